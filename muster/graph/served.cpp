#include "muster/graph/served.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "muster/graph/thread_state.h"

namespace muster::graph {
namespace {

// What was traced with it has to be traced anew.
void touch(Parameter& parameter) {
  const bool requires_grad = parameter.requires_grad();
  parameter.set_requires_grad(!requires_grad);
  parameter.set_requires_grad(requires_grad);
}

// Of all optimizers that have served parameters, each once, in the order of those.
std::vector<ParameterPtr> step_counters() {
  std::vector<ParameterPtr> counters;
  for (const ServedParameter& each : process_state().served)
    if (each.steps != nullptr && std::ranges::find(counters, each.steps) == counters.end())
      counters.push_back(each.steps);
  return counters;
}

Value all_steps() {
  Value all;
  for (const ParameterPtr& steps : step_counters())
    all = all.defined() ? apply("add", {all, Value(steps)}) : Value(steps);
  if (all.defined()) return all;
  return apply("fill", std::span<const Value>{},
               {{"dtype", DType::int32}, {"shape", std::vector<std::int64_t>{1}}, {"value", 0.0}});
}

}  // namespace

void serve(const ParameterPtr& parameter) {
  if (served_number(*parameter)) return;
  process_state().served.push_back({.parameter = parameter});
  if (parameter->is_table()) parameter->leave_to_servers();
  touch(*parameter);
}

std::optional<std::int64_t> served_number(const Parameter& parameter) {
  const auto& all = process_state().served;
  const auto found =
      std::ranges::find_if(all, [&](const auto& each) { return each.parameter.get() == &parameter; });
  if (found == all.end()) return std::nullopt;
  return found - all.begin();
}

std::int64_t served_count() { return static_cast<std::int64_t>(process_state().served.size()); }

const ServedParameter& served_parameter(std::int64_t number) {
  return process_state().served.at(static_cast<std::size_t>(number));
}

std::optional<ServedState> served_state(const Parameter& parameter) {
  for (std::int64_t number = 0; number < served_count(); ++number) {
    const auto& states = served_parameter(number).states;
    const auto found = std::ranges::find(states, &parameter, &ParameterPtr::get);
    if (found != states.end()) return ServedState{number, static_cast<std::size_t>(found - states.begin())};
  }
  return std::nullopt;
}

Result<> set_update_rule(std::int64_t number, UpdateRule rule, const ParameterPtr& steps,
                         std::vector<ParameterPtr> states) {
  ServedParameter& served = process_state().served.at(static_cast<std::size_t>(number));
  if (served.rule && (*served.rule != rule || served.steps != steps))
    return fail(Code::not_provided,
                fmt::format("parameter '{}' lives on parameter servers, where {} updates it: a second "
                            "optimizer, or one with other arguments ({}), cannot",
                            served.parameter->name(), served.rule->optimizer, rule.optimizer));
  if (served.rule) return {};
  served.rule = std::move(rule);
  served.steps = steps;
  served.states = std::move(states);
  if (served.parameter->served_rows())
    for (const ParameterPtr& state : served.states) state->leave_to_servers_beside(*served.parameter);
  for (const ServedParameter& each : process_state().served) {  // all that was traced adds up counters
    touch(*each.parameter);
    if (each.steps != nullptr) touch(*each.steps);
  }
  return {};
}

void set_served_calls(const ServedCalls& calls) { process_state().served_calls = calls; }

Result<ServedCalls> served_calls() {
  if (process_state().served_calls.update != nullptr) return process_state().served_calls;
  return fail(Code::invalid_argument, "there are no parameter servers in this process");
}

void update_served(const Value& global_step, std::span<const ParameterPtr> parameters,
                   std::span<const Value> gradients, std::span<const Value> rates) {
  std::vector<Value> inputs{global_step, all_steps()};
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    numbers.push_back(*served_number(*parameters[i]));
    inputs.insert(inputs.end(), {Value(parameters[i]), gradients[i], rates[i]});
  }
  const Values made = apply_all("served_update", inputs, {{"parameters", numbers}});
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i]->served_rows()) apply("assign", {Value(parameters[i]), made[2 + 3 * i]});
}

namespace {

// Rows of zeros for ids that the table does not have.
Value rows_or_zeros(const Value& table, const Value& ids) {
  const auto like_ids = [&](double number) {
    return apply("fill", std::span<const Value>{},
                 {{"dtype", ids.dtype()}, {"shape", ids.shape().sizes()}, {"value", number}});
  };
  const Value zeros = like_ids(0);
  const Value is_there =
      apply("logical_and", {apply("greater_equal", {ids, zeros}),
                            apply("less", {ids, like_ids(static_cast<double>(table.shape()[0]))})});
  const Value rows =
      apply("gather", {table, apply("select", {is_there, ids, zeros})}, {{"axis", std::int64_t{0}}});
  std::vector<std::int64_t> sizes = ids.shape().sizes();
  sizes.push_back(1);
  const Value nothing =
      apply("fill", std::span<const Value>{},
            {{"dtype", rows.dtype()}, {"shape", std::vector<std::int64_t>{}}, {"value", 0.0}});
  return apply("select", {apply("reshape", {is_there}, {{"shape", sizes}}), rows, nothing});
}

}  // namespace

Value look_up(const ParameterPtr& table, const Value& ids, OutOfRange out_of_range) {
  const bool gives_zeros = out_of_range == OutOfRange::zeros;
  if (const auto number = served_number(*table); number && table->served_rows())
    return apply("server_lookup", {Value(table), ids, all_steps()},
                 {{"parameter", *number}, {"gives_zeros", gives_zeros}});
  if (table->shape()[0] == 0)
    throw Exception(
        Code::invalid_argument,
        fmt::format("'{}' is a table without a vocabulary, which only parameter servers have: start some "
                    "(muster run --servers 1), or give it a vocabulary",
                    table->name()));
  if (gives_zeros) return rows_or_zeros(table, ids);
  return apply("gather", {Value(table), ids}, {{"axis", std::int64_t{0}}});
}

}  // namespace muster::graph
