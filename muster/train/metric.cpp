#include "muster/train/metric.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "muster/train/metrics.h"

namespace muster::train {
namespace {

std::string text_of(const Tensor& values) {
  std::string text;
  for (const double value : values.span<double>()) text += (text.empty() ? "" : ", ") + number_text(value);
  return fmt::format("[{}]", text);
}

template <class M>
MetricPtr make() {
  return std::make_shared<M>();
}

constexpr std::array<std::pair<std::string_view, MetricPtr (*)()>, 10> known{{
    {"accuracy", make<Accuracy>},
    {"acc", make<Accuracy>},
    {"loss", make<Loss>},
    {"top_1_accuracy", make<Top1CategoricalAccuracy>},
    {"top_5_accuracy", make<Top5CategoricalAccuracy>},
    {"precision", make<Precision>},
    {"recall", make<Recall>},
    {"F1", make<F1>},
    {"mae", make<MAE>},
    {"mse", make<MSE>},
}};

}  // namespace

Result<> Metric::merge(const State&) { return fail(Code::not_provided, "this metric defines no merge"); }

std::string to_string(const MetricValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
  if (const auto* tensor = std::get_if<Tensor>(&value)) return text_of(*tensor);
  return std::get<std::shared_ptr<const ForeignValue>>(value)->text();
}

std::optional<double> number_of(const MetricValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    double sum = 0;
    for (const double element : tensor->span<double>()) sum += element;
    return sum / static_cast<double>(tensor->elements());
  }
  return std::get<std::shared_ptr<const ForeignValue>>(value)->number();
}

std::string to_string(const MetricValues& values) {
  std::string text;
  for (const auto& [name, value] : values)
    text += fmt::format("{}'{}': {}", text.empty() ? "" : ", ", name, to_string(value));
  return "{" + text + "}";
}

std::string results_text(const MetricValues& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    std::string shown = to_string(value);
    if (const auto* number = std::get_if<double>(&value)) shown = fmt::format("{:.4g}", *number);
    if (const auto* numbers = std::get_if<Tensor>(&value))
      shown = fmt::format("[{:.4g}]", fmt::join(numbers->span<double>(), ", "));
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, shown);
  }
  return text;
}

Result<MetricPtr> metric_named(std::string_view name) {
  for (const auto& [known_name, make_metric] : known)
    if (known_name == name) return make_metric();
  return fail(Code::invalid_argument,
              fmt::format("there is no metric '{}'; there are: {}", name, fmt::join(metric_names(), ", ")));
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const auto& [name, make_metric] : known) names.emplace_back(name);
  return names;
}

}  // namespace muster::train
