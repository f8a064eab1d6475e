// class Tensor: what Python sees of graph::Value.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/muster/bindings/array_arguments.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/convert.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/operators.h"
#include "python/muster/bindings/parameter.h"
#include "python/muster/bindings/tensor_buffer.h"
#include "python/muster/bindings/tensor_index.h"
#include "python/muster/bindings/tensor_methods.h"
#include "python/muster/bindings/tensor_text.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Value;

nb::tuple shape_tuple(const Shape& shape) {
  nb::list sizes;
  for (const std::int64_t size : shape) sizes.append(size);
  return nb::tuple(sizes);
}

// numpy has no bfloat16 of its own; every bfloat16 is a float32.
nb::object readable(nb::handle self) {
  const Value& value = nb::cast<const Value&>(self);
  if (value.dtype() != DType::bfloat16) return nb::borrow(self);
  return tensor_object(tensor_as(elements_of(value), DType::float32));
}

nb::object asnumpy(nb::handle given) {
  const nb::object self = readable(given);
  const nb::object view = nb::steal(PyMemoryView_FromObject(self.ptr()));
  if (!view.is_valid()) throw nb::python_error();
  return nb::module_::import_("numpy").attr("asarray")(view);
}

// For pickle and copy: the class, and what it is called with.
nb::object pickled(nb::handle self) {
  const DType dtype = nb::cast<const Value&>(self).dtype();
  return nb::make_tuple(nb::type<Value>(), nb::make_tuple(asnumpy(self), dtype_object(dtype)));
}

nb::object array(nb::handle self, nb::handle dtype, nb::handle copy) {
  const nb::object view = asnumpy(self);
  const bool wants_copy = !copy.is_none() && nb::cast<bool>(copy);
  if (!dtype.is_none()) return view.attr("astype")(dtype, nb::arg("copy") = wants_copy);
  return wants_copy ? view.attr("copy")() : view;
}

// The element of a tensor with one element, as a Python number.
nb::object item(const Value& self) {
  const Tensor tensor = elements_of(self);
  if (tensor.elements() == 1) return element_object(tensor, 0);
  throw nb::value_error(
      ("only a tensor with one element is a number; this one has shape " + to_string(tensor.shape()))
          .c_str());
}

bool truth(const Value& self) { return PyObject_IsTrue(item(self).ptr()) == 1; }

// Without it Python would ask for entries until an IndexError, and find none in a tensor of one number.
nb::object entries_of(nb::handle self) {
  const Shape& shape = nb::cast<const Value&>(self).shape();
  if (shape.rank() == 0)
    throw nb::type_error("a tensor of one number, without axes, has no entries to iterate over");
  const nb::module_ builtins = nb::module_::import_("builtins");
  return builtins.attr("map")(self.attr("__getitem__"), builtins.attr("range")(shape[0]));
}

// f"{loss:.3f}" formats the number; without a format the text is that of str().
nb::object formatted(nb::handle self, nb::handle spec) {
  if (nb::len(spec) == 0) return nb::str(self);
  return nb::steal(PyObject_Format(item(nb::cast<const Value&>(self)).ptr(), spec.ptr()));
}

// The lists of axis `axis` and those behind it, whose elements begin at `at`, which moves behind them.
nb::object nested_lists(const Tensor& tensor, std::size_t axis, std::int64_t& at) {
  if (axis == tensor.shape().rank()) return element_object(tensor, at++);
  nb::list made;
  for (std::int64_t i = 0; i < tensor.shape()[axis]; ++i) made.append(nested_lists(tensor, axis + 1, at));
  return made;
}

nb::object nested_lists(const Value& self) {
  std::int64_t first = 0;
  return nested_lists(elements_of(self), 0, first);
}

std::size_t length(const Value& self) {
  if (self.shape().rank() == 0) throw nb::type_error("a scalar tensor has no length");
  return static_cast<std::size_t>(self.shape()[0]);
}

nb::dlpack::dtype dlpack_dtype(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(size_bytes(dtype) * 8);
  auto code = nb::dlpack::dtype_code::Int;
  if (is_floating(dtype)) code = nb::dlpack::dtype_code::Float;
  if (is_unsigned(dtype)) code = nb::dlpack::dtype_code::UInt;
  if (dtype == DType::bool_) code = nb::dlpack::dtype_code::Bool;
  if (dtype == DType::bfloat16) code = nb::dlpack::dtype_code::Bfloat;
  return {static_cast<std::uint8_t>(code), bits, 1};
}

nb::object dlpack(nb::handle self, const nb::kwargs& options) {
  const Tensor tensor = elements_of(nb::cast<const Value&>(self));
  const nb::object owner = tensor_object(tensor);  // it keeps the elements even if a parameter gets new ones
  const std::vector<std::size_t> sizes(tensor.shape().begin(), tensor.shape().end());
  const nb::ndarray<nb::array_api> view(tensor.bytes(), sizes.size(), sizes.data(), owner, nullptr,
                                        dlpack_dtype(tensor.dtype()));
  return nb::cast(view).attr("__dlpack__")(**options);
}

std::optional<DType> dtype_of_dlpack(nb::dlpack::dtype dtype) {
  for (const DType known : all_dtypes)
    if (dlpack_dtype(known) == dtype) return known;
  return std::nullopt;
}

Value from_dlpack(nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> array) {
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

// Whether `shape` leaves sizes open: None, or a None or -1 in it.
bool is_open(nb::handle shape) {
  if (shape.is_none()) return true;
  if (PyLong_Check(shape.ptr())) return false;
  for (const nb::handle size : nb::iter(shape))
    if (size.is_none() || size.equal(nb::int_(-1))) return true;
  return false;
}

// What Cell.set_inputs takes: a dtype and a shape, -1 for each open size and (-2,) for any shape.
Tensor declared_tensor(nb::handle dtype, nb::handle shape) {
  std::vector<std::int64_t> sizes;
  if (shape.is_none()) sizes.push_back(-2);
  if (!shape.is_none())
    for (const nb::handle size : nb::iter(shape))
      sizes.push_back(size.is_none() ? -1 : nb::cast<std::int64_t>(size));
  return Tensor::absent(dtype_from(dtype), Shape(std::move(sizes)),
                        "this tensor declares a shape for set_inputs() and has no elements");
}

// A tensor of what `input` has. Gradients flow to a tensor, as in MindSpore, and not to a parameter.
Value tensor_of(nb::handle input, nb::handle dtype) {
  if (!is_value(input)) {
    const Tensor made = tensor_copied(input, dtype_or_none(dtype));
    return dtype.is_none() ? made : tensor_as(made, dtype_from(dtype));
  }
  const Value& given = nb::cast<const Value&>(input);
  const Value made = given.is_parameter() ? Value(elements_of(given).clone()) : copied(given);
  return dtype.is_none() || made.dtype() == dtype_from(dtype) ? made : nn::ops::cast(made, dtype_from(dtype));
}

Value made_tensor(nb::handle input, nb::handle dtype, nb::handle shape, nb::handle init) {
  if (init.is_none() && input.is_none() && !dtype.is_none()) {
    if (is_open(shape)) return declared_tensor(dtype, shape);
    return made_tensor(input, dtype, shape, nb::str("zeros"));
  }
  if (init.is_none()) {
    if (input.is_none()) throw nb::type_error("Tensor() needs input_data, or shape and dtype");
    const Value made = tensor_of(input, dtype);
    if (!shape.is_none() && Shape(sizes_from(shape)) != made.shape())
      throw nb::value_error(("input_data has shape " + to_string(made.shape()) + ", not `shape`").c_str());
    return made;
  }
  if (!input.is_none() || shape.is_none() || dtype.is_none())
    throw nb::type_error("Tensor(init=...) needs shape and dtype, and no input_data");
  const nb::object made = nb::module_::import_("muster._core").attr("initializer")(init, shape, dtype);
  return elements_of(nb::cast<const Value&>(made)).clone();
}

// Whether an element equals it.
bool contains(const Value& self, nb::handle item) {
  const Value equal = nn::ops::equal(self, value_from(item, &self));
  return truth(nn::ops::reduce_any(equal, {}, false));
}

void bind_making(nb::class_<Value>& tensor) {
  tensor
      .def(
          "__init__",
          [](Value* self, nb::handle input, nb::handle dtype, nb::handle shape, nb::handle init, bool,
             nb::handle) { new (self) Value(made_tensor(input, dtype, shape, init)); },
          nb::arg("input_data") = nb::none(), nb::arg("dtype") = nb::none(), nb::arg("shape") = nb::none(),
          nb::arg("init") = nb::none(), nb::arg("const_arg") = false, nb::arg("device") = nb::none(),
          nb::sig("def __init__(self, input_data: object = None, dtype: DType | str | type | None = None, "
                  "shape: int | collections.abc.Sequence[int | None] | None = None, init: object = None, "
                  "const_arg: bool = False, device: str | None = None) -> None"),
          "A tensor with a copy of `input_data`: a number, nested lists of numbers, or an array. Python's "
          "float becomes float32, int int64; arrays keep their dtype unless `dtype` says otherwise. Or one "
          "of `shape` that `init` fills: an Initializer or the name of one, without which it has zeros. With "
          "`dtype` and a `shape` of which sizes are None or -1 it has no elements and declares what "
          "Cell.set_inputs() takes. `const_arg` and `device` change nothing.")
      .def_static(
          "from_numpy", [](nb::handle values) { return Value(tensor_shared(values)); }, nb::arg("array"),
          "A tensor over the memory of `array` itself, without a copy. The array must be contiguous; do "
          "not write to it while the tensor is in use.");
}

void bind_facts(nb::class_<Value>& tensor) {
  tensor
      .def_prop_ro(
          "shape", [](const Value& self) { return shape_tuple(self.shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Sizes, outermost first.")
      .def_prop_ro(
          "dtype", [](const Value& self) { return dtype_object(self.dtype()); },
          nb::sig("def dtype(self) -> DType"), "The element type.")
      .def_prop_ro(
          "ndim", [](const Value& self) { return self.shape().rank(); }, "The number of dimensions.")
      .def_prop_ro(
          "size", [](const Value& self) { return self.shape().elements(); }, "The number of elements.")
      .def_prop_ro(
          "nbytes", [](const Value& self) { return self.type().size_bytes(); },
          "Bytes that all elements take.")
      .def("__len__", &length)
      .def_prop_ro(
          "has_init", [](const Value&) { return false; }, "Whether an initializer has still to fill it.")
      .def(
          "init_data", [](nb::handle self, const nb::args&, const nb::kwargs&) { return nb::borrow(self); },
          nb::arg("args"), nb::arg("kwargs"),
          nb::sig("def init_data(self, *args: object, **kwargs: object) -> Tensor"),
          "The tensor itself, which has its elements.");
}

void bind_reading(nb::class_<Value>& tensor) {
  tensor
      .def(
          "asnumpy", &asnumpy, nb::sig("def asnumpy(self) -> numpy.typing.NDArray"),
          "The elements as a read-only numpy array, without a copy. A parameter's array follows its updates. "
          "Of bfloat16, which numpy lacks, the same numbers as float32, copied.")
      .def("numpy", &asnumpy, nb::sig("def numpy(self) -> numpy.typing.NDArray"), "The same as asnumpy().")
      .def("__reduce__", &pickled)
      .def(
          "__deepcopy__", [](const Value& self, nb::handle) { return value_object(copied(self)); },
          nb::arg("memo"), nb::sig("def __deepcopy__(self, memo: object) -> Tensor"))
      .def("__array__", &array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack__", &dlpack, nb::arg("kwargs"))
      .def("__dlpack_device__", [](const Value&) { return nb::make_tuple(nb::device::cpu::value, 0); })
      .def("item", &item, nb::sig("def item(self) -> bool | int | float"),
           "The only element, as a Python number. ValueError when there are more.")
      .def(
          "tolist", [](const Value& self) { return nested_lists(self); },
          "The elements as nested Python lists.")
      .def("__float__", [](const Value& self) { return nb::float_(item(self)); })
      .def("__int__", [](const Value& self) { return nb::int_(item(self)); })
      .def("__index__",
           [](const Value& self) { return nb::steal<nb::int_>(PyNumber_Index(item(self).ptr())); })
      .def("__bool__", &truth)
      .def("__iter__", &entries_of, nb::sig("def __iter__(self) -> collections.abc.Iterator[Tensor]"),
           "The entries along the first axis.")
      .def("__getitem__", &part_of, nb::arg("index").none(),
           nb::sig("def __getitem__(self, index: object) -> Tensor"),
           "A part of the tensor, as numpy indexes: whole numbers, slices with steps, None, ..., and integer "
           "tensors; outside of traced code also masks of bool. IndexError names the axis, the index and the "
           "size.")
      .def(
          "__setitem__", &set_indexed, nb::arg("index").none(), nb::arg("value"),
          nb::sig("def __setitem__(self, index: object, value: object) -> None"),
          "The object gets the elements of another tensor: its own ones with `value` at `index`, which is as "
          "for reading; a mask that traced code computes takes one value, or one for each place. The value "
          "is cast and broadcast. Of a Parameter the elements are written. What was taken from the tensor "
          "before, x[0] or x.asnumpy(), keeps what it had.")
      .def("__contains__", &contains, nb::arg("item"), "Whether an element equals `item`.")
      .def("__str__", [](nb::handle self) { return text_of(nb::cast<const Value&>(self), self); })
      .def("__repr__", [](nb::handle self) { return representation_of(nb::cast<const Value&>(self), self); })
      .def("__format__", &formatted, nb::arg("spec"));
}

}  // namespace

void bind_tensor(nb::module_& core) {
  nb::class_<Value> tensor(core, "Tensor", nb::dynamic_attr(), nb::type_slots(tensor_buffer_slots),
                           nb::is_weak_referenceable(),
                           "A dense array of one dtype, in memory, row by row. Tensors are values: their "
                           "elements do not change, and views of them handed to numpy are read-only. In code "
                           "that is being traced a tensor has a shape and a dtype, but no elements yet.");
  bind_making(tensor);
  bind_facts(tensor);
  bind_reading(tensor);
  bind_operators(tensor);
  bind_array_methods(tensor);
  core.def("_set_value", &set_value, nb::arg("tensor"), nb::arg("value"),
           nb::sig("def _set_value(tensor: Tensor, value: Tensor) -> None"),
           "What the object `tensor` is from now on; a Parameter gets the elements.");
  core.def("from_dlpack", &from_dlpack, nb::arg("array"), nb::sig("def from_dlpack(array: object) -> Tensor"),
           "A tensor over the memory of a contiguous array in main memory that offers __dlpack__, without a "
           "copy.");
}

}  // namespace muster::python
