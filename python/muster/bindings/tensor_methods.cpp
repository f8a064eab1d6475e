#include "python/muster/bindings/tensor_methods.h"

#include <nanobind/stl/string.h>

#include <utility>

#include "python/muster/bindings/array_arguments.h"
#include "python/muster/bindings/dtype.h"

namespace muster::python {
namespace {

using graph::Value;
namespace ops = nn::ops;

TensorObject reshape(const Value& self, const nb::args& shape) {
  return tensor_result(ops::reshape(self, Shape(sizes_from_arguments(shape))));
}

// Without axes their order is reversed.
TensorObject transpose(const Value& self, const nb::args& axes) {
  const bool none = axes.size() == 0 || (axes.size() == 1 && nb::handle(axes[0]).is_none());
  return tensor_result(none ? ops::transpose(self) : ops::transpose(self, sizes_from_arguments(axes)));
}

// Python's float is float64 here, as in numpy and MindSpore: nothing is lost.
TensorObject cast(const Value& self, nb::handle dtype) {
  const bool is_float = dtype.ptr() == reinterpret_cast<PyObject*>(&PyFloat_Type);
  return tensor_result(ops::cast(self, is_float ? DType::float64 : dtype_from(dtype)));
}

TensorObject squeeze(const Value& self, nb::handle axis) {
  std::optional<Sizes> axes = sizes_or_none(axis);
  if (axes && axes->empty()) axes.reset();
  return tensor_result(ops::squeeze(self, std::move(axes)));
}

void bind_shape_methods(nb::class_<Value>& tensor) {
  tensor
      .def("reshape", &reshape, nb::arg("shape"),
           nb::sig("def reshape(self, *shape: int | tuple[int, ...]) -> Tensor"),
           "The same elements under another shape; one size may be -1.")
      .def("view", &reshape, nb::arg("shape"),
           nb::sig("def view(self, *shape: int | tuple[int, ...]) -> Tensor"), "The same as reshape().")
      .def(
          "reshape_as",
          [](const Value& self, const Value& other) {
            return tensor_result(ops::reshape(self, other.shape()));
          },
          nb::arg("other"), "The same elements under the shape of `other`.")
      .def(
          "flatten",
          [](const Value& self, const std::string& order, std::int64_t start_dim, std::int64_t end_dim) {
            if (order != "C") raise(Error{Code::not_provided, "flatten: order 'C' is what tensors have"});
            return tensor_result(ops::flatten(self, start_dim, end_dim));
          },
          nb::arg("order") = "C", nb::kw_only(), nb::arg("start_dim") = 0, nb::arg("end_dim") = -1,
          "Axes `start_dim` to `end_dim` (included) as one; all of them without arguments.")
      .def(
          "ravel", [](const Value& self) { return tensor_result(ops::reshape(self, {-1})); },
          "All elements along one axis.")
      .def("squeeze", &squeeze, nb::arg("axis") = nb::none(),
           nb::sig("def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Tensor"),
           "The tensor without its axes of size 1: all of them, or `axis`.")
      .def(
          "expand_dims",
          [](const Value& self, std::int64_t axis) { return tensor_result(ops::expand_dims(self, axis)); },
          nb::arg("axis"), "The tensor with a new axis of size 1 at `axis`.")
      .def(
          "unsqueeze",
          [](const Value& self, std::int64_t dim) { return tensor_result(ops::expand_dims(self, dim)); },
          nb::arg("dim"), "The same as expand_dims().")
      .def(
          "broadcast_to",
          [](const Value& self, nb::handle shape) {
            return tensor_result(ops::broadcast_to(self, Shape(sizes_from(shape))));
          },
          nb::arg("shape"), nb::sig("def broadcast_to(self, shape: tuple[int, ...]) -> Tensor"),
          "The tensor repeated along axes of size 1 and new leading axes to `shape`; -1 keeps a size.")
      .def(
          "expand_as",
          [](const Value& self, const Value& other) {
            return tensor_result(ops::broadcast_to(self, other.shape()));
          },
          nb::arg("other"), "The tensor repeated to the shape of `other`.");
}

void bind_moving_methods(nb::class_<Value>& tensor) {
  tensor
      .def("transpose", &transpose, nb::arg("axes"),
           nb::sig("def transpose(self, *axes: int | tuple[int, ...] | None) -> Tensor"),
           "The axes in the order that is given, reversed when none is.")
      .def("permute", &transpose, nb::arg("axis"),
           nb::sig("def permute(self, *axis: int | tuple[int, ...]) -> Tensor"), "The axes in another order.")
      .def(
          "swapaxes",
          [](const Value& self, std::int64_t axis0, std::int64_t axis1) {
            return tensor_result(ops::swapaxes(self, axis0, axis1));
          },
          nb::arg("axis0"), nb::arg("axis1"), "The two axes exchanged.")
      .def_prop_ro(
          "T", [](const Value& self) { return tensor_result(ops::transpose(self)); },
          "The axes in reverse order.")
      .def(
          "flip",
          [](const Value& self, const nb::args& dims) {
            return tensor_result(ops::flip(self, sizes_from_arguments(dims)));
          },
          nb::arg("dims"), nb::sig("def flip(self, *dims: int | tuple[int, ...]) -> Tensor"),
          "The elements along the axes `dims` in reverse.")
      .def(
          "tile",
          [](const Value& self, const nb::args& dims) {
            return tensor_result(ops::tile(self, sizes_from_arguments(dims)));
          },
          nb::arg("dims"), nb::sig("def tile(self, *dims: int | tuple[int, ...]) -> Tensor"),
          "The tensor repeated dims[i] times along axis i.")
      .def(
          "split",
          [](const Value& self, nb::handle size, std::int64_t axis) {
            const Sizes sizes = sizes_from(size);
            return tensor_tuple(PyLong_Check(size.ptr()) ? ops::split_by(self, sizes[0], axis)
                                                         : ops::split(self, sizes, axis));
          },
          nb::arg("split_size_or_sections"), nb::arg("axis") = 0,
          nb::sig("def split(self, split_size_or_sections: int | tuple[int, ...], axis: int = 0) -> "
                  "tuple[Tensor, ...]"),
          "Parts along `axis`: of the sizes listed, or of one size.")
      .def(
          "unbind", [](const Value& self, std::int64_t dim) { return tensor_tuple(ops::unstack(self, dim)); },
          nb::arg("dim") = 0, "One tensor for each element of axis `dim`, without that axis.")
      .def("topk", &topk, nb::arg("k"), nb::arg("dim") = nb::none(), nb::arg("largest") = true,
           nb::arg("sorted") = true,
           nb::sig(
               "def topk(self, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True) -> "
               "tuple[Tensor, Tensor]"),
           "The `k` greatest (or smallest) elements along `dim` and their places.");
}

void bind_dtype_methods(nb::class_<Value>& tensor) {
  constexpr const char* cast_sig = "def astype(self, dtype: DType | str | type, copy: bool = True) -> Tensor";
  tensor
      .def(
          "astype", [](const Value& self, nb::handle dtype, bool) { return cast(self, dtype); },
          nb::arg("dtype"), nb::arg("copy") = true, nb::sig(cast_sig), "The elements converted to `dtype`.")
      .def("to", &cast, nb::arg("dtype"), nb::sig("def to(self, dtype: DType | str | type) -> Tensor"),
           "The elements converted to `dtype`.")
      .def(
          "ndimension", [](const Value& self) { return self.shape().rank(); }, "The number of dimensions.")
      .def(
          "numel", [](const Value& self) { return self.shape().elements(); }, "The number of elements.")
      .def(
          "copy", [](const Value& self) { return value_object(copied(self)); },
          "A tensor with elements of its own; gradients flow through it.")
      .def_prop_ro(
          "itemsize", [](const Value& self) { return size_bytes(self.dtype()); },
          "Bytes that one element takes.");
}

}  // namespace

nb::tuple topk(const Value& self, std::int64_t k, nb::handle dim, bool largest, bool sorted) {
  const std::int64_t axis = dim.is_none() ? -1 : nb::cast<std::int64_t>(dim);
  const Shape& shape = self.shape();
  const auto rank = static_cast<std::int64_t>(shape.rank());
  const std::int64_t at = axis < 0 ? axis + rank : axis;
  if (!sorted && at >= 0 && at < rank && shape[static_cast<std::size_t>(at)] == k) {
    Sizes beside(shape.rank(), 1);
    beside[static_cast<std::size_t>(at)] = k;
    const Value places = ops::arange({.end = static_cast<double>(k)}, DType::int32);
    return nb::make_tuple(value_object(self),
                          value_object(ops::broadcast_to(ops::reshape(places, Shape(beside)), shape)));
  }
  const ops::Topk found = ops::topk(self, k, {.axis = axis, .largest = largest});
  return nb::make_tuple(value_object(found.values), value_object(found.indices));
}

Value copied(const Value& value) {
  const bool noted = graph::is_tracing() || graph::is_taping();
  return noted ? ops::broadcast_to(value, value.shape()) : Value(elements_of(value).clone());
}

void bind_array_methods(nb::class_<Value>& tensor) {
  bind_shape_methods(tensor);
  bind_moving_methods(tensor);
  bind_dtype_methods(tensor);
}

}  // namespace muster::python
