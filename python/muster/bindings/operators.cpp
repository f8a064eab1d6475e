#include "python/muster/bindings/operators.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "muster/nn/nn.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/op_functions.h"
#include "python/muster/bindings/operands.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Value;
namespace ops = nn::ops;

using Binary = Value (*)(const Value&, const Value&);

bool is_list(nb::handle object) {
  return nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
}

// A list has the dtype of the tensor beside it, as in MindSpore.
Value operand_beside(const Value& self, nb::handle other) {
  const Value value = value_from(other, &self);
  const bool adapts = is_list(other) && value.dtype() != self.dtype();
  return adapts ? ops::cast(value, self.dtype()) : value;
}

// For what is no operand, Python asks the other one or raises TypeError.
template <Binary op, bool reversed>
TensorObject binary(const Value& self, nb::handle other) {
  if (!is_operand(other.ptr())) return nb::borrow<TensorObject>(Py_NotImplemented);
  const Value value = operand_beside(self, other);
  return tensor_result(reversed ? op(value, self) : op(self, value));
}

// A tensor is not equal to a list or a tuple, as in MindSpore: neither are its elements compared.
template <bool equal>
nb::object equality(const Value& self, nb::handle other) {
  if (is_list(other)) return nb::bool_(!equal);
  return equal ? binary<ops::equal, false>(self, other) : binary<ops::not_equal, false>(self, other);
}

Value matmul(const Value& a, const Value& b) { return ops::matmul(a, b); }

template <Value (*op)(const Value&)>
TensorObject unary(const Value& x) {
  return tensor_result(op(x));
}

template <Binary op>
TensorObject function_of_two(nb::handle a, nb::handle b) {
  const auto [left, right] = pair_from(a, b);
  return tensor_result(op(left, right));
}

// Without an axis: of all elements, one after another.
template <Value (*op)(const Value&, std::int64_t)>
Value extreme_at(const Value& self, std::optional<std::int64_t> axis) {
  return axis ? op(self, *axis) : op(ops::reshape(self, {self.shape().elements()}), -1);
}

// Without an axis along all elements; whole numbers narrower than int32, and bool, are added in int32, as in
// MindSpore.
Value running_sum(const Value& self, std::optional<std::int64_t> axis, nb::handle dtype) {
  const Value flat = axis ? self : ops::reshape(self, {self.shape().elements()});
  const bool is_narrow = !is_floating(self.dtype()) && computed_in(self.dtype()) != DType::int64 &&
                         self.dtype() != DType::uint16;
  const DType wanted = is_narrow ? DType::int32 : self.dtype();
  return ops::cumsum(ops::cast(flat, dtype.is_none() ? wanted : dtype_from(dtype)), axis.value_or(0));
}

// Beside unsigned numbers -1 would be their greatest.
bool is_below_unsigned(const Value& self, nb::handle other) {
  constexpr DType all[] = {DType::uint8, DType::uint16, DType::uint32, DType::uint64};
  return PyLong_Check(other.ptr()) &&
         std::find(std::begin(all), std::end(all), self.dtype()) != std::end(all) &&
         PyObject_RichCompareBool(other.ptr(), nb::int_(0).ptr(), Py_LT) == 1;
}

// pow(x, y, z) is no operator of tensors. Powers below 0 are rounded towards 0: only those of 1 are 1.
template <bool reversed>
TensorObject power(const Value& self, nb::handle other, nb::handle modulus) {
  if (!modulus.is_none()) return nb::borrow<TensorObject>(Py_NotImplemented);
  if (!reversed && is_below_unsigned(self, other))
    return tensor_result(ops::cast(ops::equal(self, value_from(nb::int_(1), &self)), self.dtype()));
  return binary<ops::pow, reversed>(self, other);
}

void bind_symbols(nb::class_<Value>& tensor) {
  tensor.def("__add__", &binary<ops::add, false>, nb::is_operator())
      .def("__radd__", &binary<ops::add, true>, nb::is_operator())
      .def("__sub__", &binary<ops::sub, false>, nb::is_operator())
      .def("__rsub__", &binary<ops::sub, true>, nb::is_operator())
      .def("__mul__", &binary<ops::mul, false>, nb::is_operator())
      .def("__rmul__", &binary<ops::mul, true>, nb::is_operator())
      .def("__truediv__", &binary<ops::div, false>, nb::is_operator())
      .def("__rtruediv__", &binary<ops::div, true>, nb::is_operator())
      .def("__floordiv__", &binary<ops::floor_div, false>, nb::is_operator())
      .def("__rfloordiv__", &binary<ops::floor_div, true>, nb::is_operator())
      .def("__mod__", &binary<ops::mod, false>, nb::is_operator())
      .def("__rmod__", &binary<ops::mod, true>, nb::is_operator())
      .def("__pow__", &power<false>, nb::arg("exponent"), nb::arg("modulus") = nb::none(), nb::is_operator())
      .def("__rpow__", &power<true>, nb::arg("base"), nb::arg("modulus") = nb::none(), nb::is_operator())
      .def("__matmul__", &binary<matmul, false>, nb::is_operator())
      .def("__eq__", &equality<true>, nb::arg("other").none(), nb::is_operator(),
           nb::sig("def __eq__(self, other: object, /) -> Tensor"),
           "Compares element by element; the result is a tensor of bool. False for a list or a tuple.")
      .def("__ne__", &equality<false>, nb::arg("other").none(), nb::is_operator(),
           nb::sig("def __ne__(self, other: object, /) -> Tensor"))
      .def("__lt__", &binary<ops::less, false>, nb::is_operator())
      .def("__le__", &binary<ops::less_equal, false>, nb::is_operator())
      .def("__gt__", &binary<ops::greater, false>, nb::is_operator())
      .def("__ge__", &binary<ops::greater_equal, false>, nb::is_operator())
      .def("__and__", &binary<ops::bitwise_and, false>, nb::is_operator())
      .def("__rand__", &binary<ops::bitwise_and, true>, nb::is_operator())
      .def("__or__", &binary<ops::bitwise_or, false>, nb::is_operator())
      .def("__ror__", &binary<ops::bitwise_or, true>, nb::is_operator())
      .def("__xor__", &binary<ops::bitwise_xor, false>, nb::is_operator())
      .def("__rxor__", &binary<ops::bitwise_xor, true>, nb::is_operator())
      .def("__lshift__", &binary<ops::bitwise_left_shift, false>, nb::is_operator())
      .def("__rlshift__", &binary<ops::bitwise_left_shift, true>, nb::is_operator())
      .def("__rshift__", &binary<ops::bitwise_right_shift, false>, nb::is_operator())
      .def("__rrshift__", &binary<ops::bitwise_right_shift, true>, nb::is_operator())
      .def("__invert__", &unary<ops::logical_not>,
           "Whether elements are 0, as bool: bitwise_not() turns bits.")
      .def("__neg__", &unary<ops::neg>)
      .def("__pos__", [](const Value& self) { return self; })
      .def("__abs__", &unary<ops::abs>)
      .def("__hash__", [](nb::handle self) { return reinterpret_cast<std::intptr_t>(self.ptr()) >> 4; });
}

template <Value (*op)(const Value&, const std::vector<std::int64_t>&, bool)>
void over_axes(nb::class_<Value>& tensor, const char* name, const char* documentation) {
  tensor.def(
      name,
      [](const Value& self, const Axes& axis, bool keep_dims) {
        return tensor_result(op(self, axes_from(axis), keep_dims));
      },
      nb::arg("axis").none() = nb::none(), nb::arg("keep_dims") = false, documentation);
}

void bind_math_methods(nb::class_<Value>& tensor) {
  over_axes<ops::reduce_all>(tensor, "all", "Whether all elements over `axis` are true (not 0), as bool.");
  over_axes<ops::reduce_any>(tensor, "any", "Whether any element over `axis` is true (not 0), as bool.");
  tensor
      .def(
          "argmax",
          [](const Value& self, std::optional<std::int64_t> axis) {
            return tensor_result(ops::cast(extreme_at<ops::argmax>(self, axis), DType::int64));
          },
          nb::arg("axis").none() = nb::none(),
          "The first index of the greatest element along `axis`, or of all elements, int64.")
      .def(
          "argmin",
          [](const Value& self, std::optional<std::int64_t> axis) {
            return tensor_result(extreme_at<ops::argmin>(self, axis));
          },
          nb::arg("axis").none() = nb::none(),
          "The first index of the smallest element along `axis`, or of all elements, int32.")
      .def(
          "cumsum",
          [](const Value& self, std::optional<std::int64_t> axis, nb::handle dtype) {
            return tensor_result(running_sum(self, axis, dtype));
          },
          nb::arg("axis").none() = nb::none(), nb::arg("dtype") = nb::none(),
          nb::sig(
              "def cumsum(self, axis: int | None = None, dtype: DType | str | type | None = None) -> Tensor"),
          "The running sums along `axis`, or of all elements, in `dtype` where one is given; of bool and "
          "narrower whole numbers they are int32.");
}

}  // namespace

void bind_operators(nb::class_<Value>& tensor) {
  bind_symbols(tensor);
  bind_math_methods(tensor);
  bind_op_methods(tensor);
}

void bind_ops(nb::module_& core) {
  core.def(
      "matmul", &function_of_two<matmul>, nb::arg("a"), nb::arg("b"),
      "The product of matrices (..., m, k) and (..., k, n), leading axes broadcast; vectors as numpy.matmul "
      "treats them. float32 or float64.");
}

}  // namespace muster::python
