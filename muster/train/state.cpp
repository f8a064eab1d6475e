#include "muster/train/state.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace muster::train {
namespace {

using Json = nlohmann::json;

constexpr std::string_view not_a_number = "nan";
constexpr std::string_view infinite = "inf";
constexpr std::string_view infinite_below = "-inf";

// JSON has no word for these.
Json json_of_number(double number) {
  if (std::isnan(number)) return not_a_number;
  if (std::isinf(number)) return number > 0 ? infinite : infinite_below;
  return number;
}

std::optional<double> number_named(std::string_view name) {
  if (name == not_a_number) return std::numeric_limits<double>::quiet_NaN();
  if (name == infinite) return std::numeric_limits<double>::infinity();
  if (name == infinite_below) return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

struct ToJson {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(double number) const { return json_of_number(number); }
  Json operator()(const std::vector<double>& numbers) const {
    Json made = Json::array();
    for (const double number : numbers) made.push_back(json_of_number(number));
    return made;
  }
  template <class T>
  Json operator()(const T& value) const {
    return value;
  }
};

std::optional<double> number_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return number_named(json.get_ref<const std::string&>());
  return std::nullopt;
}

// Numbers if all are, else texts.
std::optional<StateValues::Value> list_of(const Json& list) {
  std::vector<double> numbers;
  std::vector<std::string> texts;
  for (const Json& item : list) {
    if (const auto number = number_of(item)) numbers.push_back(*number);
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  if (numbers.size() == list.size()) return numbers;
  if (texts.size() == list.size()) return texts;
  return std::nullopt;
}

std::optional<StateValues::Value> value_of(const Json& json) {
  if (json.is_null()) return std::monostate{};
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) return list_of(json);
  return std::nullopt;
}

tl::unexpected<Error> unfit(const std::string& name, std::string_view kind) {
  return fail(Code::corrupt, fmt::format("the state has no {} named '{}'", kind, name));
}

}  // namespace

StateValues& StateValues::set(std::string name, Value value) {
  values_.insert_or_assign(std::move(name), std::move(value));
  return *this;
}

StateValues& StateValues::set_number_or_none(std::string name, std::optional<double> value) {
  return value ? set(std::move(name), *value) : set(std::move(name), std::monostate{});
}

Result<bool> StateValues::flag(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || !std::holds_alternative<bool>(found->second)) return unfit(name, "flag");
  return std::get<bool>(found->second);
}

Result<std::int64_t> StateValues::integer(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || !std::holds_alternative<std::int64_t>(found->second))
    return unfit(name, "whole number");
  return std::get<std::int64_t>(found->second);
}

Result<double> StateValues::number(const std::string& name) const {
  MUSTER_TRY(const std::optional<double> number, number_or_none(name));
  if (!number) return unfit(name, "number");
  return *number;
}

Result<std::optional<double>> StateValues::number_or_none(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return unfit(name, "number");
  const Value& value = found->second;
  if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
  if (const auto* word = std::get_if<std::string>(&value))
    if (const auto number = number_named(*word)) return *number;
  return unfit(name, "number");
}

Result<std::string> StateValues::text(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || !std::holds_alternative<std::string>(found->second))
    return unfit(name, "text");
  return std::get<std::string>(found->second);
}

Result<std::vector<double>> StateValues::numbers(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || !std::holds_alternative<std::vector<double>>(found->second))
    return unfit(name, "list of numbers");
  return std::get<std::vector<double>>(found->second);
}

Result<std::vector<std::string>> StateValues::texts(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return unfit(name, "list of texts");
  if (const auto* texts = std::get_if<std::vector<std::string>>(&found->second)) return *texts;
  // A list that is empty, or holds nothing but names of numbers, reads as one of numbers.
  const auto* numbers = std::get_if<std::vector<double>>(&found->second);
  if (numbers != nullptr && numbers->empty()) return std::vector<std::string>{};
  return unfit(name, "list of texts");
}

std::string StateValues::to_json() const {
  Json made = Json::object();
  for (const auto& [name, value] : values_) made[name] = std::visit(ToJson{}, value);
  // Texts may be names of files in any encoding: what is no UTF-8 is replaced rather than thrown.
  return made.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<StateValues> StateValues::from_json(std::string_view text) {
  const Json parsed = Json::parse(text, nullptr, false);
  if (!parsed.is_object()) return fail(Code::corrupt, "a state is no JSON object");
  StateValues made;
  for (const auto& [name, json] : parsed.items()) {
    auto value = value_of(json);
    if (!value) return fail(Code::corrupt, fmt::format("the state '{}' is neither a value nor a list", name));
    made.set(name, *std::move(value));
  }
  return made;
}

}  // namespace muster::train
