#include "python/muster/bindings/op_arguments.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/operands.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Argument;
using graph::Attribute;
using graph::FunctionParameter;
using graph::Value;
using Numbers = std::vector<std::int64_t>;

constexpr std::size_t inputs_max = 4;  // few: each call makes so many Values

std::string shown(nb::handle object) {
  constexpr std::size_t characters = 60;
  const nb::object text = nb::steal(PyObject_Repr(object.ptr()));
  if (!text.is_valid()) throw nb::python_error();
  std::string made = nb::str(text).c_str();
  if (made.size() > characters) made = made.substr(0, characters) + "...";
  return made;
}

[[noreturn]] void refuse(const OpFunction& function, const FunctionParameter& parameter, nb::handle object) {
  throw nb::type_error(fmt::format("{}: {} must be {}, not {} ({})", function.name, parameter.name,
                                   python_type(parameter), class_name(object), shown(object))
                           .c_str());
}

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

std::optional<Numbers> numbers_from(nb::handle object) {
  if (object.is_none()) return Numbers{};
  if (is_whole(object)) return Numbers{*whole_from(object)};
  if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr())) return std::nullopt;
  Numbers made;
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
  std::optional<Attribute> operator()(const Numbers&) const { return numbers_from(object); }
  std::optional<Attribute> operator()(DType) const { return dtype_from(object); }
  std::optional<Attribute> operator()(const graph::GraphPtr&) const { return std::nullopt; }
};

Attribute attribute_from(const OpFunction& function, const FunctionParameter& parameter, nb::handle object) {
  auto made = std::visit(Reader{object}, parameter.attribute->otherwise);
  if (!made) refuse(function, parameter, object);
  return *std::move(made);
}

// Where inputs meet in one dtype, a number takes the dtype that it has beside the first tensor.
const Value* beside(const OpFunction& function, std::span<const nb::handle> given) {
  using graph::Promotion;
  const Promotion promotion = function.op->schema.promotion;
  if (promotion == Promotion::none || promotion == Promotion::floating || promotion == Promotion::counting)
    return nullptr;
  const std::size_t first = promotion == Promotion::common_choice ? 1 : 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const FunctionParameter& parameter = function.parameters[i];
    if (parameter.attribute == nullptr && parameter.input >= first && is_value(given[i]))
      return &nb::cast<const Value&>(given[i]);
  }
  return nullptr;
}

// Where none is a tensor, the first number becomes one, and the others are beside it.
void read_inputs(const OpFunction& function, std::span<const nb::handle> given, std::span<Value> inputs) {
  const Value* like = beside(function, given);
  const bool meet = function.op->schema.promotion == graph::Promotion::common ||
                    function.op->schema.promotion == graph::Promotion::common_floating;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const FunctionParameter& parameter = function.parameters[i];
    if (parameter.attribute != nullptr) continue;
    if (is_value(given[i]))
      inputs[parameter.input] = nb::cast<const Value&>(given[i]);
    else if (is_operand(given[i].ptr()))
      inputs[parameter.input] = value_from(given[i], like);
    else
      refuse(function, parameter, given[i]);
    if (meet && like == nullptr) like = &inputs[parameter.input];
  }
}

graph::Attributes read_attributes(const OpFunction& function, std::span<const nb::handle> given) {
  graph::Attributes made;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const FunctionParameter& parameter = function.parameters[i];
    const Argument* attribute = parameter.attribute;
    if (attribute == nullptr || !given[i].is_valid() || (attribute->optional && given[i].is_none())) continue;
    made.set(attribute->name, attribute_from(function, parameter, given[i]));
  }
  return made;
}

struct PythonType {
  std::string operator()(std::int64_t) const { return "int"; }
  std::string operator()(double) const { return "float"; }
  std::string operator()(bool) const { return "bool"; }
  std::string operator()(const std::string&) const { return "str"; }
  std::string operator()(const Numbers&) const { return "int | tuple[int, ...] | None"; }
  std::string operator()(DType) const { return "DType | str"; }
  std::string operator()(const graph::GraphPtr&) const { return "object"; }
};

struct PythonDefault {
  nb::object operator()(std::int64_t value) const { return nb::int_(value); }
  nb::object operator()(double value) const { return nb::float_(value); }
  nb::object operator()(bool value) const { return nb::bool_(value); }
  nb::object operator()(const std::string& value) const { return nb::str(value.c_str()); }
  nb::object operator()(const Numbers& value) const {
    if (value.empty()) return nb::none();
    return tuple_of(value, [](std::int64_t number) { return nb::int_(number); });
  }
  nb::object operator()(DType value) const { return dtype_object(value); }
  nb::object operator()(const graph::GraphPtr&) const { return nb::none(); }
};

}  // namespace

nb::object call_op_function(const OpFunction& function, std::span<const nb::handle> given) {
  MUSTER_CHECK(function.op->schema.inputs.size() <= inputs_max, "an op has too many inputs for Python");
  std::array<Value, inputs_max> inputs;
  const std::span<Value> used(inputs.data(), function.op->schema.inputs.size());
  read_inputs(function, given, used);
  return values_object(graph::call_op(*function.op, used, read_attributes(function, given)));
}

std::string python_type(const FunctionParameter& parameter) {
  if (parameter.attribute == nullptr) return "Tensor | bool | int | float";
  return std::visit(PythonType{}, parameter.attribute->otherwise) +
         (parameter.attribute->optional ? " | None" : "");
}

bool has_default(const FunctionParameter& parameter) {
  return parameter.attribute != nullptr && !parameter.attribute->required;
}

nb::object default_of(const FunctionParameter& parameter) {
  if (parameter.attribute->optional) return nb::none();
  return std::visit(PythonDefault{}, parameter.attribute->otherwise);
}

}  // namespace muster::python
