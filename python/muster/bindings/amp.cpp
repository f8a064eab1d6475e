// Automatic mixed precision of a network.
#include <nanobind/stl/string.h>

#include <string>
#include <utility>
#include <vector>

#include "muster/nn/nn.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/dtype.h"

namespace muster::python {
namespace {

nn::Cell& network_from(nb::handle object) {
  if (nb::isinstance<nn::Cell>(object)) return nb::cast<nn::Cell&>(object);
  const std::string type = class_name(object);
  throw nb::type_error(("mixed precision is of a Cell, not of a " + type).c_str());
}

nb::object auto_mixed_precision(nb::object network, std::string amp_level, nb::handle dtype) {
  unwrap(nn::auto_mixed_precision(network_from(network),
                                  {.level = std::move(amp_level), .dtype = dtype_from(dtype)}));
  return network;
}

// Whether a cell is of one of the classes in `list`.
std::function<bool(const nn::Cell&)> is_one_of(nb::handle list, const char* name) {
  if (list.is_none()) return nullptr;
  if (!nb::isinstance<nb::list>(list))
    throw nb::type_error(("custom_mixed_precision: " + std::string(name) + " is a list of classes").c_str());
  for (const nb::handle entry : nb::borrow<nb::list>(list)) {
    if (!nb::isinstance<nb::type_object>(entry))
      throw nb::type_error(("custom_mixed_precision: " + std::string(name) + " holds classes").c_str());
    if (PyObject_IsSubclass(entry.ptr(), nb::type<nn::Cell>().ptr()) != 1)
      raise(Error{
          Code::not_provided,
          "custom_mixed_precision: lists of classes of ops are not provided yet, of classes of cells only"});
  }
  const nb::tuple classes(nb::borrow<nb::list>(list));
  return [classes](const nn::Cell& cell) {
    const nb::object object = nb::cast(&cell, nb::rv_policy::reference);
    return PyObject_IsInstance(object.ptr(), classes.ptr()) == 1;
  };
}

nb::object custom_mixed_precision(nb::object network, nb::handle white_list, nb::handle black_list,
                                  nb::handle dtype) {
  unwrap(nn::custom_mixed_precision(network_from(network), {.white = is_one_of(white_list, "white_list"),
                                                            .black = is_one_of(black_list, "black_list"),
                                                            .dtype = dtype_from(dtype)}));
  return network;
}

}  // namespace

void bind_amp(nb::module_& core) {
  const nb::object low = dtype_object(DType::bfloat16);
  core.def(
      "auto_mixed_precision", &auto_mixed_precision, nb::arg("network"), nb::arg("amp_level") = "O0",
      nb::arg("dtype") = low,
      nb::sig(
          "def auto_mixed_precision(network: Cell, amp_level: str = 'O0', dtype: DType | str = bfloat16) -> "
          "Cell"),
      "Sets how `network` computes from now on, and gives it back; parameters stay float32. 'O0': as it is. "
      "'O1': products (Conv2d, Dense, matmul, batch_matmul) and relu in `dtype`, with results in float32. "
      "'O2': everything but what BatchNorm and LayerNorm compute, with outputs in float32. 'O3': the same, "
      "since these two compute in float32 at every level. 'auto': op by op; products in `dtype`, what loses "
      "digits or overflows (normalisation, softmax, losses, exp, log, pow, ...) in float32, others in what "
      "they are given. `dtype` is bfloat16, which has the range of float32, so that losses need no scale. "
      "ValueError for other levels and dtypes. A processor without instructions for bfloat16 computes "
      "products in float32 and rounds them, which a warning says once.");
  core.def(
      "custom_mixed_precision", &custom_mixed_precision, nb::arg("network"), nb::kw_only(),
      nb::arg("white_list") = nb::none(), nb::arg("black_list") = nb::none(), nb::arg("dtype") = low,
      nb::sig(
          "def custom_mixed_precision(network: Cell, *, white_list: list[type] | None = None, black_list: "
          "list[type] | None = None, dtype: DType | str = bfloat16) -> Cell"),
      "Sets how `network` computes from now on, and gives it back: the cells below of the classes in "
      "`white_list` in `dtype`, with results in float32; or all but those of the classes in `black_list`. "
      "One of the two lists is needed.");
}

}  // namespace muster::python
