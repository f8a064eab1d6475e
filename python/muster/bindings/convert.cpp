#include "python/muster/bindings/convert.h"

#include <nanobind/stl/string.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::python {
namespace {

constexpr std::size_t list_depth_max = 32;  // of nested lists; deeper ones are cyclic or a mistake

// A Py_buffer that is released when it goes.
class BufferView {
 public:
  BufferView(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
  }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;
  ~BufferView() { PyBuffer_Release(&view_); }
  Py_buffer& operator*() { return view_; }
  Py_buffer* operator->() { return &view_; }

 private:
  Py_buffer view_{};
};

std::optional<DType> dtype_of_integer(bool is_signed, std::size_t size_bytes) {
  if (is_signed && size_bytes == 1) return DType::int8;
  if (is_signed && size_bytes == 2) return DType::int16;
  if (is_signed && size_bytes == 4) return DType::int32;
  if (is_signed && size_bytes == 8) return DType::int64;
  if (!is_signed && size_bytes == 1) return DType::uint8;
  if (!is_signed && size_bytes == 2) return DType::uint16;
  if (!is_signed && size_bytes == 4) return DType::uint32;
  if (!is_signed && size_bytes == 8) return DType::uint64;
  return std::nullopt;
}

// The dtype that a buffer's format and element size spell; formats are those of Python's struct module.
std::optional<DType> dtype_of_format(const char* format, std::size_t size_bytes) {
  std::string_view text = format == nullptr ? "B" : format;
  if (!text.empty() && (text[0] == '@' || text[0] == '=' || text[0] == '<')) text.remove_prefix(1);
  if (text.size() != 1) return std::nullopt;
  if (text == "e") return DType::float16;
  if (text == "f") return DType::float32;
  if (text == "d") return DType::float64;
  if (text == "?") return DType::bool_;
  const bool is_signed = std::string_view("bhilqn").find(text[0]) != std::string_view::npos;
  const bool is_unsigned = std::string_view("BHILQN").find(text[0]) != std::string_view::npos;
  if (is_signed || is_unsigned) return dtype_of_integer(is_signed, size_bytes);
  return std::nullopt;
}

DType dtype_of_buffer(const Py_buffer& view) {
  if (const auto dtype = dtype_of_format(view.format, static_cast<std::size_t>(view.itemsize))) return *dtype;
  const std::string format = view.format == nullptr ? "none" : view.format;
  throw nb::type_error(("an array with elements of format '" + format +
                        "' has no dtype here; convert it with astype to bool, float16, float32, float64, or "
                        "int or uint of 8, 16, 32 or 64 bits")
                           .c_str());
}

Shape shape_of(const Py_buffer& view) {
  return Shape(std::vector<std::int64_t>(view.shape, view.shape + view.ndim));
}

// Whether it is an array of the bfloat16 that the package ml_dtypes adds to numpy.
bool is_bfloat16_array(nb::handle object) {
  const nb::object dtype = nb::getattr(object, "dtype", nb::none());
  const nb::object name = nb::getattr(dtype, "name", nb::none());
  return nb::isinstance<nb::str>(name) && nb::cast<std::string>(name) == "bfloat16";
}

Tensor copied_from_buffer(nb::handle object) {
  BufferView view(object, PyBUF_FULL_RO);
  Tensor made(dtype_of_buffer(*view), shape_of(*view));
  if (PyBuffer_ToContiguous(made.bytes(), &*view, view->len, 'C') != 0) throw nb::python_error();
  return made;
}

// Such elements fit no buffer's format, so their bits are taken as whole numbers.
Tensor copied_from_bfloat16(nb::handle object) {
  const nb::object bits = nb::module_::import_("numpy").attr("asarray")(object).attr("view")("uint16");
  BufferView view(bits, PyBUF_FULL_RO);
  Tensor made(DType::bfloat16, shape_of(*view));
  if (PyBuffer_ToContiguous(made.bytes(), &*view, view->len, 'C') != 0) throw nb::python_error();
  return made;
}

bool is_sequence(nb::handle object) {
  return nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
}

// What reading nested lists finds: the shape, the widest kind of number, and the numbers in order.
struct Nested {
  std::array<std::int64_t, list_depth_max> sizes{};
  std::size_t depth = 0;  // how many of the sizes are known
  bool any_float = false;
  bool all_bool = true;
  bool all_numbers = true;
  std::vector<nb::handle> leaves;  // borrowed from the lists
};

void collect(nb::handle object, std::size_t depth, Nested& found) {
  if (!is_sequence(object)) {
    found.all_numbers = found.all_numbers && is_number(object) && depth == found.depth;
    found.any_float = found.any_float || PyFloat_Check(object.ptr());
    found.all_bool = found.all_bool && PyBool_Check(object.ptr());
    found.leaves.push_back(object);
    return;
  }
  if (depth >= list_depth_max) throw nb::value_error("lists are nested too deeply for a tensor");
  const auto size = static_cast<std::int64_t>(nb::len(object));
  if (depth == found.depth && found.leaves.empty()) found.sizes[found.depth++] = size;
  if (depth >= found.depth || found.sizes[depth] != size)
    throw nb::value_error("the lists at one depth must be equally long to make a tensor");
  for (std::int64_t i = 0; i < size; ++i) {
    PyObject* item =
        PyList_Check(object.ptr()) ? PyList_GET_ITEM(object.ptr(), i) : PyTuple_GET_ITEM(object.ptr(), i);
    collect(item, depth + 1, found);
  }
}

template <class T>
T number_as(nb::handle object) {
  if constexpr (is_floating_v<T>) {
    const double value = PyFloat_AsDouble(object.ptr());
    if (value == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return static_cast<T>(static_cast<Computed<T>>(value));
  } else {
    const nb::object whole = nb::steal(PyNumber_Long(object.ptr()));
    if (!whole.is_valid()) throw nb::python_error();
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      const unsigned long long value = PyLong_AsUnsignedLongLong(whole.ptr());
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      return value;
    }
    const long long value = PyLong_AsLongLong(whole.ptr());
    if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    if constexpr (std::is_same_v<T, bool>) return value != 0;
    if (!std::is_same_v<T, bool> &&
        !std::in_range<std::conditional_t<std::is_same_v<T, bool>, int, T>>(value))
      throw nb::value_error(("the number " + std::to_string(value) + " does not fit into the dtype").c_str());
    return static_cast<T>(value);
  }
}

// Calls `body` with a value of the C++ element type of `dtype`.
template <class Body>
void with_element_type(DType dtype, Body body) {
  switch (dtype) {
    case DType::float32:
      return body(float{});
    case DType::float64:
      return body(double{});
    case DType::int32:
      return body(std::int32_t{});
    case DType::int64:
      return body(std::int64_t{});
    case DType::uint8:
      return body(std::uint8_t{});
    case DType::uint32:
      return body(std::uint32_t{});
    case DType::int8:
      return body(std::int8_t{});
    case DType::bool_:
      return body(bool{});
    case DType::bfloat16:
      return body(bfloat16{});
    case DType::float16:
      return body(float16{});
    case DType::int16:
      return body(std::int16_t{});
    case DType::uint16:
      return body(std::uint16_t{});
    case DType::uint64:
      return body(std::uint64_t{});
  }
}

Tensor from_numbers(const Nested& found, DType dtype) {
  Tensor made(dtype, Shape(std::vector<std::int64_t>(found.sizes.data(), found.sizes.data() + found.depth)));
  with_element_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    T* element = made.data<T>();
    for (const nb::handle leaf : found.leaves) *element++ = number_as<T>(leaf);
  });
  return made;
}

DType dtype_of_numbers(const Nested& found) {
  if (found.any_float || found.leaves.empty()) return DType::float32;
  return found.all_bool ? DType::bool_ : DType::int64;
}

DType kind_of_numbers(DType dtype) {
  if (dtype == DType::float64) return DType::float32;
  return dtype == DType::int32 ? DType::int64 : dtype;
}

Tensor copied_by_numpy(nb::handle object) {
  return copied_from_buffer(nb::module_::import_("numpy").attr("asarray")(object));
}

// The buffer comes first: asking numpy for the name of a dtype takes ten times as long.
Tensor copied_from_array(nb::handle object) {
  try {
    return copied_from_buffer(object);
  } catch (const std::exception&) {
    if (!is_bfloat16_array(object)) throw;
  }
  return copied_from_bfloat16(object);
}

}  // namespace

bool is_number(nb::handle object) { return PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()); }

Tensor tensor_copied(nb::handle object, std::optional<DType> dtype) {
  const bool has_buffer = PyObject_CheckBuffer(object.ptr());  // numpy's float64 is also a Python float
  if (!has_buffer && (is_number(object) || is_sequence(object))) {
    Nested found;
    collect(object, 0, found);
    if (found.all_numbers) return from_numbers(found, dtype.value_or(dtype_of_numbers(found)));
  }
  if (has_buffer) {
    const Tensor made = copied_from_array(object);
    return dtype ? tensor_as(made, *dtype) : made;
  }
  // Lists of numpy's numbers and arrays: as those of Python's.
  const Tensor made = copied_by_numpy(object);
  return tensor_as(made, dtype.value_or(kind_of_numbers(made.dtype())));
}

Tensor tensor_shared(nb::handle object) {
  auto view = std::make_unique<BufferView>(object, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS);
  const DType dtype = dtype_of_buffer(**view);
  Shape shape = shape_of(**view);
  auto* data = static_cast<std::byte*>((*view)->buf);
  const auto size = static_cast<std::size_t>((*view)->len);
  // The last user may be any thread, and may outlive the interpreter: then the memory is the system's to
  // free.
  auto release = [held = view.release()] {
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire lock;
    delete held;
  };
  return Tensor(dtype, std::move(shape), Buffer::borrow(data, size, std::move(release)));
}

Tensor tensor_as(const Tensor& from, DType dtype) {
  if (from.dtype() == dtype) return from;
  return from.cast(dtype);
}

}  // namespace muster::python
