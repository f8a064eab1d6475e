#include "python/muster/bindings/row_arguments.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "python/muster/bindings/array_arguments.h"
#include "python/muster/bindings/dtype.h"

namespace muster::python {
namespace {

using graph::Argument;
using graph::Attribute;
using Integers = std::vector<std::int64_t>;

// ---- One argument -----------------------------------------------------------------------------------------

// A tensor of several elements has the methods of a number and is none: refuse() names the argument then.
std::nullopt_t no_number() {
  if (PyErr_ExceptionMatches(PyExc_ValueError) == 0) throw nb::python_error();
  PyErr_Clear();
  return std::nullopt;
}

bool is_whole(nb::handle object) { return PyIndex_Check(object.ptr()) && !PyBool_Check(object.ptr()); }

std::optional<std::int64_t> whole_from(nb::handle object) {
  if (!is_whole(object)) return std::nullopt;
  const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) return no_number();
  const long long made = PyLong_AsLongLong(number.ptr());
  if (made == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return made;
}

std::optional<Integers> numbers_from(nb::handle given) {
  if (given.is_none()) return Integers{};
  const nb::object object = listed(given);
  if (is_whole(object)) {  // or a tensor of more axes, which only looks like a number
    const auto whole = whole_from(object);
    return whole ? std::optional(Integers{*whole}) : std::nullopt;
  }
  if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr())) return std::nullopt;
  Integers made;
  for (const nb::handle number : nb::iter(object)) {
    const auto whole = whole_from(number);
    if (!whole) return std::nullopt;
    made.push_back(*whole);
  }
  return made;
}

std::optional<double> double_from(nb::handle object) {
  if (PyFloat_Check(object.ptr())) return PyFloat_AS_DOUBLE(object.ptr());
  if (PyNumber_Check(object.ptr()) == 0 || PyComplex_Check(object.ptr())) return std::nullopt;
  const double made = PyFloat_AsDouble(object.ptr());
  if (made == -1.0 && PyErr_Occurred() != nullptr) return no_number();
  return made;
}

// One overload for each type of attribute: nothing where `object` is of another one.
struct Reader {
  nb::handle object;

  std::optional<Attribute> operator()(std::int64_t) const { return whole_from(object); }
  std::optional<Attribute> operator()(double) const { return double_from(object); }
  std::optional<Attribute> operator()(bool) const {
    if (!PyBool_Check(object.ptr())) return std::nullopt;
    return object.ptr() == Py_True;
  }
  std::optional<Attribute> operator()(const std::string&) const {
    if (!PyUnicode_Check(object.ptr())) return std::nullopt;
    return std::string(nb::str(object).c_str());
  }
  std::optional<Attribute> operator()(const Integers&) const { return numbers_from(object); }
  std::optional<Attribute> operator()(DType) const { return dtype_from(object); }
  std::optional<Attribute> operator()(const graph::GraphPtr&) const { return std::nullopt; }
};

struct PythonType {
  std::string operator()(std::int64_t) const { return "int"; }
  std::string operator()(double) const { return "float"; }
  std::string operator()(bool) const { return "bool"; }
  std::string operator()(const std::string&) const { return "str"; }
  std::string operator()(const Integers&) const { return "int | tuple[int, ...] | None"; }
  std::string operator()(DType) const { return "DType | str"; }
  std::string operator()(const graph::GraphPtr&) const { return "object"; }
};

struct PythonDefault {
  nb::object operator()(std::int64_t value) const { return nb::int_(value); }
  nb::object operator()(double value) const { return nb::float_(value); }
  nb::object operator()(bool value) const { return nb::bool_(value); }
  nb::object operator()(const std::string& value) const { return nb::str(value.c_str()); }
  nb::object operator()(const Integers& value) const {
    if (value.empty()) return nb::none();
    return tuple_of(value, [](std::int64_t number) { return nb::int_(number); });
  }
  nb::object operator()(DType value) const { return dtype_object(value); }
  nb::object operator()(const graph::GraphPtr&) const { return nb::none(); }
};

// ---- All of a class ---------------------------------------------------------------------------------------

std::string shown_with_default(const ClassParameter& parameter, const std::string& type) {
  std::string text = parameter.name + type;
  if (parameter.otherwise.is_valid())
    text += fmt::format("{}{}", type.empty() ? "=" : " = ", nb::repr(parameter.otherwise).c_str());
  return text;
}

// "params, learning_rate=0.1, *, use_lazy=False"; with types for stubs.
std::string parameters_text(const ClassParameters& parameters, bool with_types) {
  std::string text;
  bool by_name_only = false;
  for (const ClassParameter& parameter : parameters) {
    if (!text.empty()) text += ", ";
    if (parameter.by_name_only && !std::exchange(by_name_only, true)) text += "*, ";
    text += shown_with_default(parameter, with_types ? ": " + parameter.type : "");
  }
  return text;
}

[[noreturn]] void refuse_call(std::string_view owner, const ClassParameters& parameters,
                              const std::string& what) {
  throw nb::type_error(
      fmt::format("{}: {}; it is called as {}({})", owner, what, owner, parameters_text(parameters, false))
          .c_str());
}

std::size_t place_of(std::string_view owner, const ClassParameters& parameters, nb::handle keyword,
                     nb::handle value) {
  const std::string name = nb::str(keyword).c_str();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == name) return i;
  refuse_call(owner, parameters, fmt::format("there is no argument {}={}", name, nb::repr(value).c_str()));
}

}  // namespace

std::string shown(nb::handle object) {
  constexpr std::size_t characters = 60;
  const nb::object text = nb::steal(PyObject_Repr(object.ptr()));
  if (!text.is_valid()) throw nb::python_error();
  std::string made = nb::str(text).c_str();
  if (made.size() > characters) made = made.substr(0, characters) + "...";
  return made;
}

Attribute attribute_from(std::string_view owner, std::string_view name, const Argument& argument,
                         nb::handle object) {
  if (auto made = std::visit(Reader{object}, argument.otherwise)) return *std::move(made);
  throw nb::type_error(fmt::format("{}: {} must be {}, not {} ({})", owner, name, python_type(argument),
                                   class_name(object), shown(object))
                           .c_str());
}

std::string python_type(const Argument& argument) {
  return std::visit(PythonType{}, argument.otherwise) + (argument.optional ? " | None" : "");
}

nb::object default_of(const Argument& argument) {
  return argument.optional ? nb::none() : std::visit(PythonDefault{}, argument.otherwise);
}

std::vector<nb::object> placed(std::string_view owner, const ClassParameters& parameters,
                               const nb::args& positional, const nb::kwargs& keywords) {
  std::vector<nb::object> made(parameters.size());
  for (std::size_t i = 0; i < positional.size(); ++i) {
    if (i >= parameters.size() || parameters[i].by_name_only)
      refuse_call(owner, parameters, fmt::format("{} arguments were given", positional.size()));
    made[i] = positional[i];
  }
  for (const auto [keyword, value] : keywords) {
    nb::object& place = made[place_of(owner, parameters, keyword, value)];
    if (place.is_valid())
      refuse_call(owner, parameters, fmt::format("{} was given twice", nb::str(keyword).c_str()));
    place = nb::borrow(value);
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (!made[i].is_valid()) made[i] = parameters[i].otherwise;
    if (!made[i].is_valid()) refuse_call(owner, parameters, parameters[i].name + " is missing");
  }
  return made;
}

std::string init_signature(const ClassParameters& parameters) {
  const std::string text = parameters_text(parameters, true);
  return fmt::format("def __init__(self{}{}) -> None", text.empty() ? "" : ", ", text);
}

}  // namespace muster::python
