#include "python/muster/bindings/operators.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "muster/nn/nn.h"
#include "python/muster/bindings/convert.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Value;
namespace ops = nn::ops;

using Binary = Value (*)(const Value&, const Value&);

// Whether an operator may take `object`; for others Python asks the other operand or raises TypeError.
bool is_operand(nb::handle object) {
  return is_value(object) || PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()) ||
         PyObject_CheckBuffer(object.ptr());
}

template <Binary op, bool reversed>
TensorObject binary(const Value& self, nb::handle other) {
  if (!is_operand(other)) return nb::borrow<TensorObject>(Py_NotImplemented);
  const Value value = value_from(other, &self);
  return tensor_result(reversed ? op(value, self) : op(self, value));
}

Value matmul(const Value& a, const Value& b) { return ops::matmul(a, b); }
Value negative(const Value& x) { return ops::mul(x, value_from(nb::int_(-1), &x)); }

TensorObject cast(const Value& x, nb::handle dtype) { return tensor_result(ops::cast(x, dtype_from(dtype))); }

template <Value (*op)(const Value&)>
TensorObject unary(const Value& x) {
  return tensor_result(op(x));
}

template <Binary op>
TensorObject function_of_two(nb::handle a, nb::handle b) {
  const Value left =
      is_value(a) ? nb::cast<const Value&>(a) : value_from(a, is_value(b) ? nb::inst_ptr<Value>(b) : nullptr);
  return tensor_result(op(left, value_from(b, &left)));
}

}  // namespace

void bind_operators(nb::class_<Value>& tensor) {
  tensor.def("__add__", &binary<ops::add, false>, nb::is_operator())
      .def("__radd__", &binary<ops::add, true>, nb::is_operator())
      .def("__sub__", &binary<ops::sub, false>, nb::is_operator())
      .def("__rsub__", &binary<ops::sub, true>, nb::is_operator())
      .def("__mul__", &binary<ops::mul, false>, nb::is_operator())
      .def("__rmul__", &binary<ops::mul, true>, nb::is_operator())
      .def("__truediv__", &binary<ops::div, false>, nb::is_operator())
      .def("__rtruediv__", &binary<ops::div, true>, nb::is_operator())
      .def("__matmul__", &binary<matmul, false>, nb::is_operator())
      .def("__eq__", &binary<ops::equal, false>, nb::is_operator(),
           "Compares element by element; the result is a tensor of bool.")
      .def("__hash__", [](nb::handle self) { return reinterpret_cast<std::intptr_t>(self.ptr()) >> 4; })
      .def("__neg__", &unary<negative>)
      .def("sum", &unary<ops::reduce_sum>, "The sum of all elements, a scalar.")
      .def("mean", &unary<ops::reduce_mean>, "The mean of all elements, a scalar.")
      .def("argmax", &unary<ops::argmax>, "The index of the greatest element of the last axis, int32.");
}

void bind_ops(nb::module_& core) {
  core.def(
      "matmul", &function_of_two<matmul>, nb::arg("a"), nb::arg("b"),
      "The product of matrices (..., m, k) and (..., k, n), leading axes broadcast; vectors as numpy.matmul "
      "treats them. float32 or float64.");
  core.def("add", &function_of_two<ops::add>, nb::arg("a"), nb::arg("b"), "a + b, element by element.");
  core.def("sub", &function_of_two<ops::sub>, nb::arg("a"), nb::arg("b"), "a - b, element by element.");
  core.def("mul", &function_of_two<ops::mul>, nb::arg("a"), nb::arg("b"), "a * b, element by element.");
  core.def("div", &function_of_two<ops::div>, nb::arg("a"), nb::arg("b"), "a / b, element by element.");
  core.def("equal", &function_of_two<ops::equal>, nb::arg("a"), nb::arg("b"), "a == b, element by element.");
  core.def("bias_add", &function_of_two<ops::bias_add>, nb::arg("x"), nb::arg("bias"),
           "x (..., C) with bias (C,) added to each row.");
  core.def("relu", &unary<ops::relu>, nb::arg("x"), "max(x, 0), element by element.");
  core.def("tanh", &unary<ops::tanh>, nb::arg("x"), "tanh(x), element by element.");
  core.def("reduce_sum", &unary<ops::reduce_sum>, nb::arg("x"), "The sum of all elements, a scalar.");
  core.def("reduce_mean", &unary<ops::reduce_mean>, nb::arg("x"), "The mean of all elements, a scalar.");
  core.def("argmax", &unary<ops::argmax>, nb::arg("x"),
           "The index of the greatest element of the last axis, int32.");
  core.def("cast", &cast, nb::arg("x"), nb::arg("dtype"), "The elements converted to `dtype`.");
}

}  // namespace muster::python
