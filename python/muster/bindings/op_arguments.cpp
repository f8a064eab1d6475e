#include "python/muster/bindings/op_arguments.h"

#include <fmt/format.h>

#include <array>

#include "python/muster/bindings/operands.h"
#include "python/muster/bindings/row_arguments.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Argument;
using graph::FunctionParameter;
using graph::Value;

constexpr std::size_t inputs_max = 4;  // few: each call makes so many Values

[[noreturn]] void refuse(const OpFunction& function, const FunctionParameter& parameter, nb::handle object) {
  throw nb::type_error(fmt::format("{}: {} must be {}, not {} ({})", function.name, parameter.name,
                                   python_type(parameter), class_name(object), shown(object))
                           .c_str());
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
    made.set(attribute->name, attribute_from(function.name, parameter.name, *attribute, given[i]));
  }
  return made;
}

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
  return python_type(*parameter.attribute);
}

bool has_default(const FunctionParameter& parameter) {
  return parameter.attribute != nullptr && !parameter.attribute->required;
}

nb::object default_of(const FunctionParameter& parameter) { return default_of(*parameter.attribute); }

}  // namespace muster::python
