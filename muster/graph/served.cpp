#include "muster/graph/served.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "muster/graph/thread_state.h"

namespace muster::graph {

void serve(const ParameterPtr& parameter) {
  if (served_number(*parameter)) return;
  process_state().served.push_back({.parameter = parameter, .rule = {}});
  // What was traced with it has to be traced anew.
  const bool requires_grad = parameter->requires_grad();
  parameter->set_requires_grad(!requires_grad);
  parameter->set_requires_grad(requires_grad);
}

std::optional<std::int64_t> served_number(const Parameter& parameter) {
  const auto& all = process_state().served;
  const auto found =
      std::ranges::find_if(all, [&](const auto& each) { return each.parameter.get() == &parameter; });
  if (found == all.end()) return std::nullopt;
  return found - all.begin();
}

std::int64_t served_count() { return static_cast<std::int64_t>(process_state().served.size()); }

ServedParameter served_parameter(std::int64_t number) {
  const auto& served = process_state().served.at(static_cast<std::size_t>(number));
  return {.name = served.parameter->name(), .type = served.parameter->type(), .rule = served.rule};
}

Result<> set_update_rule(std::int64_t number, UpdateRule rule) {
  auto& served = process_state().served.at(static_cast<std::size_t>(number));
  if (served.rule && *served.rule != rule)
    return fail(Code::not_provided,
                fmt::format("parameter '{}' lives on parameter servers, where {} updates it: a second "
                            "optimizer, or one with other arguments ({}), cannot",
                            served.parameter->name(), served.rule->optimizer, rule.optimizer));
  served.rule = std::move(rule);
  return {};
}

void set_served_updater(ServedUpdater updater) { process_state().served_updater = updater; }
ServedUpdater served_updater() { return process_state().served_updater; }

void update_served(const Value& global_step, std::span<const ParameterPtr> parameters,
                   std::span<const Value> gradients, std::span<const Value> rates) {
  std::vector<Value> inputs{global_step};
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    numbers.push_back(*served_number(*parameters[i]));
    inputs.insert(inputs.end(), {Value(parameters[i]), gradients[i], rates[i]});
  }
  const Values made = apply_all("served_update", inputs, {{"parameters", numbers}});
  for (std::size_t i = 0; i < parameters.size(); ++i)
    apply("assign", {Value(parameters[i]), made[1 + 3 * i]});
}

}  // namespace muster::graph
