// class Tensor: what Python sees of muster::Tensor.
#include "muster/tensor/tensor.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/convert.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/tensor_buffer.h"
#include "python/muster/bindings/tensor_text.h"

namespace muster::python {
namespace {

std::optional<DType> dtype_or_none(nb::handle dtype) {
  if (dtype.is_none()) return std::nullopt;
  return dtype_from(dtype);
}

nb::tuple shape_tuple(const Shape& shape) {
  nb::list sizes;
  for (const std::int64_t size : shape) sizes.append(size);
  return nb::tuple(sizes);
}

nb::object asnumpy(nb::handle self) {
  return nb::module_::import_("numpy").attr("asarray")(nb::steal(PyMemoryView_FromObject(self.ptr())));
}

nb::object array(nb::handle self, nb::handle dtype, nb::handle copy) {
  const nb::object view = asnumpy(self);
  if (dtype.is_none() && !copy.is_none() && nb::cast<bool>(copy)) return view.attr("copy")();
  if (dtype.is_none()) return view;
  return view.attr("astype")(dtype, nb::arg("copy") = !copy.is_none() && nb::cast<bool>(copy));
}

// The element of a tensor with one element, as a Python number.
nb::object item(const Tensor& self) {
  if (self.elements() != 1)
    throw nb::value_error(
        ("only a tensor with one element is a number; this one has shape " + to_string(self.shape()))
            .c_str());
  return element_object(self, 0);
}

Tensor row(const Tensor& self, Py_ssize_t index) {
  if (self.shape().rank() == 0) throw nb::index_error("a scalar has no elements to index");
  const std::int64_t size = self.shape()[0];
  if (index < 0) index += size;
  if (index < 0 || index >= size)
    throw nb::index_error(("index out of range for a dimension of " + std::to_string(size)).c_str());
  const auto& sizes = self.shape().sizes();
  Shape inner(std::vector<std::int64_t>(sizes.begin() + 1, sizes.end()));
  const auto step = static_cast<std::size_t>(inner.elements()) * size_bytes(self.dtype());
  return Tensor(self.dtype(), std::move(inner), self.buffer(),
                self.offset_bytes() + static_cast<std::size_t>(index) * step);
}

Tensor rows(const Tensor& self, nb::handle slice) {
  if (self.shape().rank() == 0) throw nb::index_error("a scalar has no elements to slice");
  Py_ssize_t start = 0;
  Py_ssize_t stop = 0;
  Py_ssize_t step = 0;
  if (PySlice_Unpack(slice.ptr(), &start, &stop, &step) != 0) throw nb::python_error();
  const Py_ssize_t count = PySlice_AdjustIndices(self.shape()[0], &start, &stop, step);
  if (step != 1)
    throw nb::index_error("slices with a step are not provided; index the view that asnumpy() gives");
  Shape shape = self.shape();
  shape[0] = count;
  const std::size_t row_bytes =
      self.shape()[0] == 0 ? 0 : self.size_bytes() / static_cast<std::size_t>(self.shape()[0]);
  return Tensor(self.dtype(), std::move(shape), self.buffer(),
                self.offset_bytes() + static_cast<std::size_t>(start) * row_bytes);
}

// A view: leading whole numbers, or one slice of the first dimension. Everything else is numpy's trade.
Tensor get_item(const Tensor& self, nb::handle index) {
  if (PySlice_Check(index.ptr())) return rows(self, index);
  if (PyIndex_Check(index.ptr())) {
    const Py_ssize_t at = PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError);
    if (at == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return row(self, at);
  }
  if (nb::isinstance<nb::tuple>(index)) {
    Tensor view = self;
    for (const nb::handle part : nb::borrow<nb::tuple>(index)) view = get_item(view, part);
    return view;
  }
  throw nb::index_error(
      "a tensor is indexed by whole numbers or a slice of its first dimension; "
      "for more, index the view that asnumpy() gives");
}

// f"{loss:.3f}" formats the number; without a format the text is that of str().
nb::object formatted(nb::handle self, nb::handle spec) {
  if (nb::len(spec) == 0) return nb::str(self);
  return nb::steal(PyObject_Format(item(nb::cast<const Tensor&>(self)).ptr(), spec.ptr()));
}

nb::object tolist(const Tensor& self) {
  if (self.shape().rank() == 0) return element_object(self, 0);
  nb::list made;
  for (std::int64_t i = 0; i < self.shape()[0]; ++i) made.append(tolist(row(self, i)));
  return made;
}

bool truth(const Tensor& self) { return nb::cast<bool>(nb::bool_(item(self))); }

std::size_t length(const Tensor& self) {
  if (self.shape().rank() == 0) throw nb::type_error("a scalar tensor has no length");
  return static_cast<std::size_t>(self.shape()[0]);
}

nb::dlpack::dtype dlpack_dtype(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(size_bytes(dtype) * 8);
  auto code = nb::dlpack::dtype_code::Int;
  if (is_floating(dtype)) code = nb::dlpack::dtype_code::Float;
  if (dtype == DType::uint8 || dtype == DType::uint32) code = nb::dlpack::dtype_code::UInt;
  if (dtype == DType::bool_) code = nb::dlpack::dtype_code::Bool;
  return {static_cast<std::uint8_t>(code), bits, 1};
}

nb::object dlpack(nb::handle self, const nb::kwargs& options) {
  const Tensor& tensor = nb::cast<const Tensor&>(self);
  std::vector<std::size_t> sizes(tensor.shape().begin(), tensor.shape().end());
  const nb::ndarray<nb::array_api> view(tensor.bytes(), sizes.size(), sizes.data(), self, nullptr,
                                        dlpack_dtype(tensor.dtype()));
  return nb::cast(view).attr("__dlpack__")(**options);
}

std::optional<DType> dtype_of_dlpack(nb::dlpack::dtype dtype) {
  for (int i = 0; i <= static_cast<int>(DType::bool_); ++i)
    if (dlpack_dtype(static_cast<DType>(i)) == dtype) return static_cast<DType>(i);
  return std::nullopt;
}

Tensor from_dlpack(nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> array) {
  const auto dtype = dtype_of_dlpack(array.dtype());
  if (!dtype) throw nb::type_error("the elements of this array are of no dtype that tensors have");
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = 0; axis < array.ndim(); ++axis)
    sizes.push_back(static_cast<std::int64_t>(array.shape(axis)));
  // Elements are immutable by convention, so the view may lie on memory that the exporter calls read-only.
  auto* data = static_cast<std::byte*>(const_cast<void*>(array.data()));
  auto buffer = Buffer::borrow(data, array.nbytes(), [array] {});
  return Tensor(*dtype, Shape(std::move(sizes)), std::move(buffer));
}

}  // namespace

void bind_tensor(nb::module_& core) {
  nb::class_<Tensor>(
      core, "Tensor", nb::type_slots(tensor_buffer_slots),
      "A dense array of one dtype, in memory, row by row. Tensors are values: their elements do "
      "not change, and views of them handed to numpy are read-only.")
      .def(
          "__init__",
          [](Tensor* self, nb::handle input, nb::handle dtype) {
            new (self) Tensor(tensor_copied(input, dtype_or_none(dtype)));
          },
          nb::arg("input"), nb::arg("dtype") = nb::none(),
          "A tensor with a copy of `input`: a number, nested lists of numbers, or an array. Python's float "
          "becomes float32, int int64; arrays keep their dtype unless `dtype` says otherwise.")
      .def_static(
          "from_numpy", &tensor_shared, nb::arg("array"),
          "A tensor over the memory of `array` itself, without a copy. The array must be contiguous; do "
          "not write to it while the tensor is in use.")
      .def_prop_ro(
          "shape", [](const Tensor& self) { return shape_tuple(self.shape()); }, "Sizes, outermost first.")
      .def_prop_ro(
          "dtype", [](const Tensor& self) { return dtype_object(self.dtype()); }, "The element type.")
      .def_prop_ro(
          "ndim", [](const Tensor& self) { return self.shape().rank(); }, "The number of dimensions.")
      .def_prop_ro(
          "size", [](const Tensor& self) { return self.elements(); }, "The number of elements.")
      .def_prop_ro(
          "nbytes", [](const Tensor& self) { return self.size_bytes(); }, "Bytes that all elements take.")
      .def("asnumpy", &asnumpy, "The elements as a read-only numpy array, without a copy.")
      .def("numpy", &asnumpy, "The elements as a read-only numpy array, without a copy.")
      .def("__array__", &array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack__", &dlpack, nb::arg("kwargs"))
      .def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(nb::device::cpu::value, 0); })
      .def(
          "astype", [](const Tensor& self, nb::handle dtype) { return tensor_as(self, dtype_from(dtype)); },
          nb::arg("dtype"), "The elements converted to `dtype`.")
      .def("item", &item, "The only element, as a Python number. ValueError when there are more.")
      .def("tolist", &tolist, "The elements as nested Python lists.")
      .def("__float__", [](const Tensor& self) { return nb::float_(item(self)); })
      .def("__int__", [](const Tensor& self) { return nb::int_(item(self)); })
      .def("__index__", [](const Tensor& self) { return nb::steal(PyNumber_Index(item(self).ptr())); })
      .def("__bool__", &truth)
      .def("__len__", &length)
      .def("__getitem__", &get_item, nb::arg("index"))
      .def("__str__", [](nb::handle self) { return text_of(nb::cast<const Tensor&>(self), self); })
      .def("__format__", &formatted, nb::arg("spec"))
      .def("__repr__",
           [](nb::handle self) { return representation_of(nb::cast<const Tensor&>(self), self); });
  core.def("from_dlpack", &from_dlpack, nb::arg("array"),
           "A tensor over the memory of a contiguous array in main memory that offers __dlpack__, without a "
           "copy.");
}

}  // namespace muster::python
