#include "python/muster/bindings/operands.h"

#include "python/muster/bindings/array_arguments.h"
#include "python/muster/bindings/value.h"

namespace muster::python {

using graph::Value;

bool is_operand(const PyObject* object) {
  auto* given = const_cast<PyObject*>(object);
  return is_value(nb::handle(given)) || PyLong_Check(given) || PyFloat_Check(given) || PyList_Check(given) ||
         PyTuple_Check(given) || PyObject_CheckBuffer(given) != 0;
}

bool is_axes(const PyObject* object) {
  auto* given = const_cast<PyObject*>(object);
  if (is_value(nb::handle(given))) return nb::cast<const Value&>(nb::handle(given)).shape().rank() < 2;
  return given == Py_None || PyLong_Check(given) || PyList_Check(given) || PyTuple_Check(given);
}

std::vector<std::int64_t> axes_from(nb::handle given) {
  std::vector<std::int64_t> made;
  if (given.is_none()) return made;
  const nb::object axes = listed(given);
  if (PyLong_Check(axes.ptr()) || is_value(axes)) return {nb::cast<std::int64_t>(axes)};
  for (const nb::handle axis : nb::iter(axes)) made.push_back(nb::cast<std::int64_t>(axis));
  return made;
}

std::pair<Value, Value> pair_from(nb::handle a, nb::handle b) {
  if (is_value(a)) {
    const Value& left = nb::cast<const Value&>(a);
    return {left, value_from(b, &left)};
  }
  if (!is_value(b)) {
    const Value left = value_from(a);
    return {left, value_from(b, &left)};
  }
  const Value& right = nb::cast<const Value&>(b);
  return {value_from(a, &right), right};
}

const char* documentation_of(std::string_view op) {
  const graph::Op* row = graph::find_op(op);
  MUSTER_CHECK(row != nullptr, "an op without a row was to be documented");
  return row->documentation.data();  // a literal
}

}  // namespace muster::python
