#include "python/muster/bindings/array_arguments.h"

#include <nanobind/stl/string.h>

#include "python/muster/bindings/dtype.h"

namespace muster::python {
namespace {

std::int64_t whole_number(nb::handle object) {
  const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  return nb::cast<std::int64_t>(number);
}

}  // namespace

nb::object listed(nb::handle object) {
  const bool is_list = is_value(object) && nb::cast<const graph::Value&>(object).shape().rank() == 1;
  return is_list ? nb::object(object.attr("tolist")()) : nb::borrow(object);
}

Sizes sizes_from(nb::handle given) {
  const nb::object object = listed(given);
  if (!nb::isinstance<nb::tuple>(object) && !nb::isinstance<nb::list>(object)) return {whole_number(object)};
  Sizes sizes;
  for (const nb::handle size : nb::iter(object)) sizes.push_back(whole_number(size));
  return sizes;
}

std::optional<Sizes> sizes_or_none(nb::handle object) {
  if (object.is_none()) return std::nullopt;
  return sizes_from(object);
}

Sizes sizes_from_arguments(const nb::args& arguments) {
  if (arguments.size() == 1) return sizes_from(arguments[0]);
  return sizes_from(arguments);
}

std::optional<DType> dtype_or_none(nb::handle object) {
  if (object.is_none()) return std::nullopt;
  return dtype_from(object);
}

std::vector<graph::Value> values_from(nb::handle tensors) {
  if (!nb::isinstance<nb::tuple>(tensors) && !nb::isinstance<nb::list>(tensors))
    throw nb::type_error(("a tuple or list of tensors is needed, not " + class_name(tensors)).c_str());
  std::vector<graph::Value> values;
  for (const nb::handle tensor : nb::iter(tensors)) values.push_back(value_from(tensor));
  return values;
}

nb::typed<nb::tuple, TensorObject, nb::ellipsis> tensor_tuple(const graph::Values& values) {
  return nb::borrow<nb::typed<nb::tuple, TensorObject, nb::ellipsis>>(tuple_of(values, &value_object));
}

}  // namespace muster::python
