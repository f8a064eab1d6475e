// Results of evaluations as JSON: a process that returns is given those of before.
#include <fmt/format.h>

#include <utility>

#include "muster/train/front_end.h"
#include "muster/train/metric.h"
#include "muster/train/state.h"

namespace muster::train {
namespace {

// The names of the parts of value `index`.
std::string number_of_value(std::size_t index) { return fmt::format("number {}", index); }
std::string array_of_value(std::size_t index) { return fmt::format("array {}", index); }
std::string shape_of_value(std::size_t index) { return fmt::format("shape {}", index); }
std::string foreign_of_value(std::size_t index) { return fmt::format("foreign {}", index); }

bool put(StateValues& state, std::size_t index, const MetricValue& value) {
  if (const auto* number = std::get_if<double>(&value)) {
    state.set(number_of_value(index), *number);
  } else if (const auto* tensor = std::get_if<Tensor>(&value)) {
    const auto elements = tensor->span<double>();
    state.set(array_of_value(index), std::vector<double>(elements.begin(), elements.end()));
    std::vector<double> sizes;
    for (std::size_t axis = 0; axis < tensor->shape().rank(); ++axis)
      sizes.push_back(static_cast<double>(tensor->shape()[axis]));
    state.set(shape_of_value(index), std::move(sizes));
  } else {
    auto json = std::get<std::shared_ptr<const ForeignValue>>(value)->json();
    if (!json) return false;
    state.set(foreign_of_value(index), *std::move(json));
  }
  return true;
}

Result<MetricValue> value_in(const StateValues& state, std::size_t index) {
  if (state.has(number_of_value(index))) return state.number(number_of_value(index));
  if (state.has(array_of_value(index))) {
    MUSTER_TRY(const std::vector<double> elements, state.numbers(array_of_value(index)));
    MUSTER_TRY(const std::vector<double> sizes, state.numbers(shape_of_value(index)));
    const Shape shape(std::vector<std::int64_t>(sizes.begin(), sizes.end()));
    if (static_cast<std::size_t>(shape.elements()) != elements.size())
      return fail(Code::corrupt, "an array of an evaluation has another shape than elements");
    return Tensor::from<double>(elements, shape);
  }
  MUSTER_TRY(const std::string json, state.text(foreign_of_value(index)));
  auto made = front_end().read_value ? front_end().read_value(json) : nullptr;
  if (made == nullptr) return fail(Code::corrupt, "a result of an evaluation cannot be read");
  return made;
}

}  // namespace

std::optional<std::string> to_json(const MetricValues& values) {
  StateValues state;
  std::vector<std::string> names;
  for (const auto& [name, value] : values) {
    if (!put(state, names.size(), value)) return std::nullopt;
    names.push_back("name " + name);  // so that it is no number's name
  }
  return state.set("names", std::move(names)).to_json();
}

Result<MetricValues> metric_values_from(const std::string& json) {
  MUSTER_TRY(const StateValues state, StateValues::from_json(json));
  MUSTER_TRY(const std::vector<std::string> names, state.texts("names"));
  MetricValues values;
  for (const std::string& name : names) {
    MUSTER_TRY(MetricValue value, value_in(state, values.size()));
    values.emplace_back(name.substr(std::string("name ").size()), std::move(value));
  }
  return values;
}

}  // namespace muster::train
