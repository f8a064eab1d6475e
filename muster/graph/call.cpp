#include "muster/graph/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "muster/graph/precision.h"

namespace muster::graph {
namespace {

int width(DType dtype) { return static_cast<int>(size_bytes(dtype)); }
bool is_whole(const Value& x) { return x.defined() && !is_floating(x.dtype()); }

// Undefined values stay.
Value in_dtype(const Value& x, DType dtype) {
  return x.defined() && x.dtype() != dtype ? apply("cast", {x}, {{"dtype", dtype}}) : x;
}

Value floating(const Value& x) { return is_whole(x) ? in_dtype(x, DType::float32) : x; }

// As MindSpore counts: wider unsigned numbers stay what they are.
Value counted(const Value& x) {
  const bool stays = !is_whole(x) || (is_unsigned(x.dtype()) && x.dtype() != DType::uint8);
  return stays ? x : in_dtype(x, DType::int64);
}

// The inputs from `first` on in the dtype that they meet in.
Values meeting(std::span<const Value> inputs, std::size_t first) {
  Values made(inputs.begin(), inputs.end());
  std::optional<DType> dtype;
  for (std::size_t i = first; i < made.size(); ++i)
    if (made[i].defined()) dtype = dtype ? promoted(*dtype, made[i].dtype()) : made[i].dtype();
  for (std::size_t i = first; i < made.size(); ++i)
    made[i] = in_dtype(made[i], dtype.value_or(DType::float32));
  return made;
}

bool have_one_dtype(std::span<const Value> inputs) {
  for (const Value& input : inputs)
    if (!input.defined() || input.dtype() != inputs[0].dtype()) return false;
  return true;
}

// The inputs as the op wants them; nothing where they already are.
std::optional<Values> promoted(Promotion promotion, std::span<const Value> inputs) {
  switch (promotion) {
    case Promotion::none:
      break;
    case Promotion::floating:
      if (is_whole(inputs[0])) return Values{floating(inputs[0])};
      break;
    case Promotion::counting:
      return Values{counted(inputs[0])};
    case Promotion::common_floating:
      if (std::all_of(inputs.begin(), inputs.end(), is_whole)) {
        Values made;
        for (const Value& input : inputs) made.push_back(floating(input));
        return made;
      }
      [[fallthrough]];
    case Promotion::common:
      if (!have_one_dtype(inputs)) return meeting(inputs, 0);
      break;
    case Promotion::common_choice:
      if (!have_one_dtype(inputs.subspan(1))) return meeting(inputs, 1);
      break;
  }
  return std::nullopt;
}

// Without what is for the inputs only: it is done to the first one.
std::optional<DType> cast_wanted(const Op& op, const Attributes& attributes) {
  for (const Argument& argument : op.schema.attributes) {
    if (!argument.casts) continue;
    if (const Attribute* dtype = attributes.find(argument.name)) return std::get<DType>(*dtype);
  }
  return std::nullopt;
}

Attributes without_casts(const Op& op, const Attributes& attributes) {
  Attributes made;
  for (const auto& [name, value] : attributes.entries()) {
    const auto is_cast = [&](const Argument& argument) { return argument.casts && argument.name == name; };
    if (std::none_of(op.schema.attributes.begin(), op.schema.attributes.end(), is_cast))
      made.set(name, value);
  }
  return made;
}

void require_good(const Op& op, const Attributes& attributes) {
  for (const Argument& argument : op.schema.attributes) {
    const Attribute* value = attributes.find(argument.name);
    if (value != nullptr) require_in_range(op, argument, *value);
    if (value == nullptr && argument.required)
      throw Exception(Code::invalid_argument, fmt::format("{}: {} is missing", op.name, argument.name));
  }
}

Values shown(const Op& op, Values results) {
  if (op.outputs != 0) results.resize(op.schema.results);
  return results;
}

}  // namespace

DType promoted(DType a, DType b) {
  if (const auto dtype = meeting_dtype(a, b)) return *dtype;
  if (a == b || b == DType::bool_) return a;
  if (a == DType::bool_) return b;
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  if (is_floating(a) && width(a) == width(b)) return DType::float32;  // those of 16 bits hold not each other
  if (is_floating(a) || is_unsigned(a) == is_unsigned(b)) return width(a) >= width(b) ? a : b;
  const DType other = is_unsigned(a) ? b : a;            // the signed one
  const int needed = 2 * width(is_unsigned(a) ? a : b);  // bytes that hold the unsigned one with a sign
  if (width(other) >= needed) return other;
  if (needed > width(DType::int64))
    throw Exception(Code::invalid_argument,
                    fmt::format("no dtype holds the numbers of both {} and {}: cast one of them",
                                to_string(a), to_string(b)));
  return needed == 2 ? DType::int16 : (needed == 4 ? DType::int32 : DType::int64);
}

const Op& required_op(std::string_view name) {
  const Op* op = find_op(name);
  MUSTER_CHECK(op != nullptr, "a function was made for an op that is not there");
  return *op;
}

Values call_op(const Op& op, std::span<const Value> inputs, const Attributes& attributes) {
  require_good(op, attributes);
  if (const auto dtype = cast_wanted(op, attributes)) {
    Values cast(inputs.begin(), inputs.end());
    cast[0] = in_dtype(cast[0], *dtype);
    return call_op(op, cast, without_casts(op, attributes));
  }
  if (const auto made = promoted(op.schema.promotion, inputs))
    return shown(op, apply_all(op, *made, attributes));
  return shown(op, apply_all(op, inputs, attributes));
}

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

bool is_in_range(const Argument& argument, const Attribute& value) {
  const auto contains = [&](auto number) { return argument.range.contains(static_cast<double>(number)); };
  if (const auto* number = std::get_if<double>(&value)) return contains(*number);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return contains(*whole);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
    return std::all_of(list->begin(), list->end(), contains);
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

std::optional<std::string> allowed_instead(const Argument& argument, const Attribute& value) {
  if (argument.range.is_bounded() && !is_in_range(argument, value)) return to_string(argument.range);
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
