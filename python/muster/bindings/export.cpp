// export: a network as an ONNX file.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using Names = std::optional<std::vector<std::string>>;

std::vector<Tensor> inputs_from(nb::handle inputs) {
  std::vector<Tensor> tensors;
  if (nb::isinstance<nb::list>(inputs) || nb::isinstance<nb::tuple>(inputs)) {
    for (const nb::handle input : nb::borrow<nb::object>(inputs))
      tensors.push_back(elements_of(value_from(input)));
    return tensors;
  }
  return {elements_of(value_from(inputs))};
}

// Tracing calls Python's construct, so the lock is kept.
void export_network(nn::Cell& net, nb::handle inputs, const std::string& path, bool dynamic_batch,
                    Names input_names, Names output_names) {
  unwrap(train::export_onnx(net, inputs_from(inputs), path,
                            {.dynamic_batch = dynamic_batch,
                             .input_names = std::move(input_names).value_or(std::vector<std::string>{}),
                             .output_names = std::move(output_names).value_or(std::vector<std::string>{})}));
}

}  // namespace

void bind_export(nb::module_& core) {
  core.def(
      "export", &export_network, nb::arg("net"), nb::arg("inputs"), nb::arg("path"), nb::kw_only(),
      nb::arg("dynamic_batch") = false, nb::arg("input_names") = nb::none(),
      nb::arg("output_names") = nb::none(),
      "Writes what `net` computes, not training, as an ONNX file (opset 17) with its parameters. `inputs` "
      "is a tensor or a list of them: their dtypes and shapes are those of the file; with "
      "`dynamic_batch` axis 0 of all inputs, which has the same size in each, may have any. Inputs are "
      "named 'input', or 'input_0', 'input_1' and so on, outputs likewise, unless names are given. The "
      "network stays as it was. NotImplementedError names an op that ONNX has no counterpart for, its "
      "cell, and what to do; ValueError names inputs that do not fit; OSError the file.");
}

}  // namespace muster::python
