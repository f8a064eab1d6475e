#include "python/muster/bindings/dtype.h"

#include <nanobind/stl/string.h>

#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "python/muster/bindings/process.h"

namespace muster::python {
namespace {

struct DTypeName {
  DType dtype;
};

std::string python_name(DType dtype) { return std::string(to_string(dtype)); }

std::string mindspore_text(DType dtype) {
  std::string text = python_name(dtype);
  const bool is_compound = text.starts_with("u") || text.starts_with("b");  // UInt8, BFloat16, but Bool
  text[0] = static_cast<char>(std::toupper(text[0]));
  if (is_compound && dtype != DType::bool_) text[1] = static_cast<char>(std::toupper(text[1]));
  return text;
}

std::string attribute_name(DType dtype) { return dtype == DType::bool_ ? "bool_" : python_name(dtype); }

// The name under which `object` may call a dtype: numpy's dtype objects and scalar types carry one.
std::optional<std::string> dtype_name_of(nb::handle object) {
  if (nb::isinstance<nb::str>(object)) return nb::cast<std::string>(object);
  for (const char* attribute : {"name", "__name__"}) {
    const nb::object name = nb::getattr(object, attribute, nb::none());
    if (nb::isinstance<nb::str>(name)) return nb::cast<std::string>(name);
  }
  return std::nullopt;
}

// Other names of dtypes, numpy's and C's, which MindSpore takes too.
constexpr std::pair<std::string_view, DType> other_names[] = {
    {"bool_", DType::bool_},    {"half", DType::float16}, {"single", DType::float32},
    {"double", DType::float64}, {"byte", DType::int8},    {"short", DType::int16},
    {"intc", DType::int32},     {"long", DType::int64},   {"intp", DType::int64},
    {"longlong", DType::int64}, {"ubyte", DType::uint8},  {"ushort", DType::uint16},
    {"uintc", DType::uint32},   {"uintp", DType::uint64}, {"ulonglong", DType::uint64}};

// Whatever the case: MindSpore writes Float32.
std::optional<DType> dtype_named(std::string name) {
  for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
  if (const auto dtype = dtype_from_string(name)) return dtype;
  for (const auto& [other, dtype] : other_names)
    if (other == name) return dtype;
  return std::nullopt;
}

}  // namespace

nb::handle mindspore_words() { return process().tensor_words; }

nb::object dtype_object(DType dtype) { return nb::borrow(process().dtypes[static_cast<std::size_t>(dtype)]); }

bool is_dtype(nb::handle object) { return nb::isinstance<DTypeName>(object); }

DType dtype_from(nb::handle object) {
  if (nb::isinstance<DTypeName>(object)) return nb::cast<DTypeName&>(object).dtype;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::bool_;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::int64;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::float32;
  if (const auto name = dtype_name_of(object))
    if (const auto dtype = dtype_named(*name)) return *dtype;
  const std::string shown = nb::cast<std::string>(nb::repr(object));
  throw nb::type_error(
      ("no dtype " + shown +
       "; the dtypes are float16, float32, float64, bfloat16, int8, int16, int32, int64, uint8, uint16, "
       "uint32, uint64 and bool_")
          .c_str());
}

void bind_dtype(nb::module_& core) {
  nb::class_<DTypeName>(core, "DType", "The element type of a tensor, such as muster.float32.")
      .def_prop_ro(
          "name", [](const DTypeName& self) { return python_name(self.dtype); },
          "The name, as numpy spells it: 'float32', 'bool'.")
      .def_prop_ro(
          "itemsize", [](const DTypeName& self) { return size_bytes(self.dtype); },
          "Bytes that one element takes.")
      .def_prop_ro(
          "is_floating_point", [](const DTypeName& self) { return is_floating(self.dtype); },
          "Whether its numbers may have a fraction.")
      .def_prop_ro(
          "is_signed",
          [](const DTypeName& self) {
            return is_floating(self.dtype) || (is_whole(self.dtype) && !is_unsigned(self.dtype));
          },
          "Whether its numbers may be negative.")
      .def_prop_ro(
          "is_complex", [](const DTypeName&) { return false; }, "False: there are no such dtypes.")
      .def("__str__",
           [](const DTypeName& self) {
             return mindspore_words().is_valid() ? mindspore_text(self.dtype) : python_name(self.dtype);
           })
      .def("__repr__",
           [](const DTypeName& self) {
             return mindspore_words().is_valid() ? "mindspore." + python_name(self.dtype)
                                                 : python_name(self.dtype);
           })
      .def("__reduce__", [](const DTypeName& self) { return attribute_name(self.dtype); });  // of this module
  for (const DType dtype : all_dtypes) {
    const nb::object object = nb::cast(DTypeName{dtype});
    core.attr(attribute_name(dtype).c_str()) = object;
    process().dtypes[static_cast<std::size_t>(dtype)] = object.inc_ref().ptr();
  }
  core.def(
      "_use_mindspore_texts",
      [](nb::object of_tensor) { process().tensor_words = of_tensor.release().ptr(); }, nb::arg("of_tensor"),
      "From now on texts are MindSpore's: those of dtypes ('Float32'), and of tensors what `of_tensor` "
      "gives.");
  core.def(
      "dtype", [](nb::handle name) { return dtype_object(dtype_from(name)); }, nb::arg("name"),
      "The dtype called `name`: 'float32', a numpy dtype, or Python's bool, int (int64) or float (float32).");
}

}  // namespace muster::python
