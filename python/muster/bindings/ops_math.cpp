// Functions of numbers that the op rows do not describe.
#include "muster/nn/nn.h"
#include "python/muster/bindings/operands.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Value;
namespace ops = nn::ops;

template <Value (*op)(const Value&, const std::vector<std::int64_t>&, bool)>
void over_axes(nb::module_& core, const char* name, const char* documentation) {
  core.def(
      name,
      [](const Operand& x, const Axes& axis, bool keep_dims) {
        return tensor_result(op(value_from(x), axes_from(axis), keep_dims));
      },
      nb::arg("x"), nb::arg("axis").none() = nb::none(), nb::arg("keep_dims") = false, documentation);
}

}  // namespace

void bind_ops_math(nb::module_& core) {
  over_axes<ops::reduce_all>(
      core, "reduce_all",
      "Whether all elements over `axis` (all axes by default) are true (not 0), as bool.");
  over_axes<ops::reduce_any>(
      core, "reduce_any", "Whether any element over `axis` (all axes by default) is true (not 0), as bool.");
  core.def(
      "dropout",
      [](const Operand& x, double keep_prob) {
        return tensor_result(ops::dropout(value_from(x), keep_prob, graph::default_context()));
      },
      nb::arg("x"), nb::arg("keep_prob") = 0.5, documentation_of("dropout"));
  core.def(
      "dropout_and_mask",
      [](const Operand& x, double keep_prob) {
        return nb::borrow<nb::typed<nb::tuple, TensorObject, TensorObject>>(
            values_object(ops::dropout_and_mask(value_from(x), keep_prob, graph::default_context())));
      },
      nb::arg("x"), nb::arg("keep_prob") = 0.5, documentation_of("dropout"));
}

}  // namespace muster::python
