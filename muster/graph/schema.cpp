#include "muster/graph/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "muster/graph/op.h"

namespace muster::graph {
namespace {

std::vector<FunctionParameter> all_parameters(const Schema& schema) {
  std::vector<FunctionParameter> made;
  for (std::size_t i = 0; i < schema.inputs.size(); ++i)
    made.push_back({.name = schema.inputs[i], .input = i});
  for (const Argument& attribute : schema.attributes)
    made.push_back({.name = attribute.name, .attribute = &attribute});
  return made;
}

bool is_named(const FunctionParameter& parameter, std::string_view name) {
  return parameter.name == name || (parameter.attribute != nullptr && parameter.attribute->python == name);
}

// "dim:axis" is the parameter `axis` under the name `dim`; "input" is the one of this name, or else the one
// at `place`.
FunctionParameter renamed(const Op& op, const std::vector<FunctionParameter>& all, std::string_view name,
                          std::size_t place) {
  const std::size_t colon = name.find(':');
  const std::string_view shown = name.substr(0, colon);
  const std::string_view own = colon == std::string_view::npos ? name : name.substr(colon + 1);
  auto found = std::find_if(all.begin(), all.end(),
                            [own](const FunctionParameter& each) { return is_named(each, own); });
  if (found == all.end() && colon == std::string_view::npos && place < all.size())
    found = all.begin() + static_cast<std::ptrdiff_t>(place);
  if (found == all.end())
    throw Exception(Code::internal,
                    fmt::format("{}: its schema names '{}', which it has not", op.name, name));
  FunctionParameter made = *found;
  made.name = shown;
  return made;
}

bool has_range(const Argument& argument) {
  return argument.min || argument.max || argument.above || argument.below;
}

// NaN is in no range.
bool is_in_range(const Argument& argument, double value) {
  return (!argument.min || value >= *argument.min) && (!argument.max || value <= *argument.max) &&
         (!argument.above || value > *argument.above) && (!argument.below || value < *argument.below);
}

bool is_in_range(const Argument& argument, const Attribute& value) {
  if (const auto* number = std::get_if<double>(&value)) return is_in_range(argument, *number);
  if (const auto* whole = std::get_if<std::int64_t>(&value))
    return is_in_range(argument, static_cast<double>(*whole));
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
    return std::all_of(list->begin(), list->end(), [&](std::int64_t number) {
      return is_in_range(argument, static_cast<double>(number));
    });
  return true;
}

}  // namespace

std::vector<FunctionParameter> parameters_of(const Op& op, const std::vector<std::string_view>& names,
                                             std::size_t skipped) {
  std::vector<FunctionParameter> all = all_parameters(op.schema);
  if (names.empty()) {
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(skipped));
    return all;
  }
  std::vector<FunctionParameter> made;
  for (const std::string_view name : names) made.push_back(renamed(op, all, name, skipped + made.size()));
  return made;
}

std::string range_of(const Argument& argument) {
  if (!has_range(argument)) return "";
  if (argument.above && argument.below) return fmt::format("in ({}, {})", *argument.above, *argument.below);
  if (argument.above) return fmt::format("above {}", *argument.above);
  if (argument.below) return fmt::format("below {}", *argument.below);
  if (!argument.max) return fmt::format("at least {}", *argument.min);
  if (!argument.min) return fmt::format("at most {}", *argument.max);
  return fmt::format("from {} to {}", *argument.min, *argument.max);
}

std::optional<std::string> allowed_instead(const Argument& argument, const Attribute& value) {
  if (has_range(argument) && !is_in_range(argument, value)) return range_of(argument);
  const auto* text = std::get_if<std::string>(&value);
  const auto& choices = argument.choices;
  if (text == nullptr || choices.empty()) return std::nullopt;
  if (std::find(choices.begin(), choices.end(), *text) != choices.end()) return std::nullopt;
  return fmt::format("one of '{}'", fmt::join(choices, "', '"));
}

void require_in_range(const Op& op, const Argument& argument, const Attribute& value) {
  if (const auto allowed = allowed_instead(argument, value))
    throw Exception(Code::invalid_argument, fmt::format("{}: {} is {}; it must be {}", op.name, argument.name,
                                                        to_string(value), *allowed));
}

}  // namespace muster::graph
