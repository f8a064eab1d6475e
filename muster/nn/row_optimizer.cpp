#include "muster/nn/row_optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/graph/served.h"
#include "muster/graph/sharding/updates.h"

namespace muster::nn {
namespace {

// The number that an argument holds: 1 for true.
double number_in(const graph::Attributes& arguments, std::string_view name) {
  const graph::Attribute* found = arguments.find(name);
  MUSTER_CHECK(found != nullptr, "the schema of an optimizer names an argument that it has not");
  if (const auto* truth = std::get_if<bool>(found)) return *truth ? 1 : 0;
  MUSTER_CHECK(std::holds_alternative<double>(*found), "state goes by a number or by a truth value");
  return std::get<double>(*found);
}

}  // namespace

RowOptimizer::RowOptimizer(const graph::Op& row, const ParameterGroups& parameters, const Settings& settings,
                           graph::Attributes arguments)
    : Optimizer(std::string(row.optimizer.name), parameters, settings),
      row_(row),
      arguments_(std::move(arguments)) {
  check_arguments();
  make_states();
  set_rules_of_tables();
}

void RowOptimizer::check_arguments() const {
  for (const graph::Argument& argument : row_.optimizer.arguments) {
    const graph::Attribute* given = arguments_.find(argument.name);
    if (given == nullptr) continue;  // one of Settings, or of Python alone
    auto allowed = graph::allowed_instead(argument, *given);
    if (const auto* number = std::get_if<double>(given); number && !allowed && !std::isfinite(*number))
      allowed = "finite";
    if (allowed)
      throw Exception(Code::invalid_argument, fmt::format("{}: {} must be {}, not {}", class_name(),
                                                          argument.name, *allowed, to_string(*given)));
  }
  if (row_.optimizer.check != nullptr) row_.optimizer.check(arguments_).value();
}

void RowOptimizer::set_argument(std::string_view name, graph::Attribute value) {
  if (!has_argument(name))
    throw Exception(Code::invalid_argument, fmt::format("{} has no argument '{}'", class_name(), name));
  const auto kept = [this] {
    return std::ranges::count_if(row_.optimizer.states, [this](const auto& state) { return is_kept(state); });
  };
  const graph::Attributes before = arguments_;
  const auto kept_before = kept();
  arguments_.set(name, std::move(value));
  try {
    check_arguments();
    if (kept() != kept_before)
      throw Exception(
          Code::invalid_argument,
          fmt::format("{}: with {} {} it keeps other state of its parameters than with {}: make a "
                      "new optimizer",
                      class_name(), name, to_string(*arguments_.find(name)), to_string(*before.find(name))));
  } catch (...) {
    arguments_ = before;
    throw;
  }
  touch(fmt::format("'{}' was set", name));
  set_rules_of_tables();
}

Result<> RowOptimizer::set_weight_decay(double decay) {
  MUSTER_TRY_VOID(Optimizer::set_weight_decay(decay));
  set_rules_of_tables();
  return {};
}

void RowOptimizer::set_rules_of_tables() const {
  for (std::size_t i = 0; i < updated_parameters().size(); ++i)
    if (updated_parameters()[i]->served_rows()) set_served_rule(i, update_of_table(i));
}

void RowOptimizer::make_states() {
  for (const graph::OptimizerState& state : row_.optimizer.states) {
    if (!is_kept(state)) continue;
    const double initial =
        state.initial_from.empty() ? state.initial : number_in(arguments_, state.initial_from);
    states_.push_back({state.name, make_state(state.name, initial, state.is_scalar)});
  }
}

bool RowOptimizer::updates_elements() const { return graph::is_elementwise_update(row_); }

bool RowOptimizer::is_kept(const graph::OptimizerState& state) const {
  return state.kept_with.empty() || number_in(arguments_, state.kept_with) != 0;
}

void RowOptimizer::add_input(std::string_view name, std::size_t index, std::vector<Value>& inputs) const {
  if (name == "global_step") inputs.emplace_back(global_step());
  for (const State& state : states_)
    if (state.name == name) inputs.emplace_back(state.parameters[index]);
}

// Of a table before its first lookup, which tells the servers of it.
void RowOptimizer::set_served_rule(std::size_t index, const Update& update) const {
  graph::Attributes arguments = arguments_;
  arguments.set("weight_decay", update.weight_decay);
  arguments.set("loss_scale", update.loss_scale);
  graph::set_update_rule(*graph::served_number(*updated_parameters()[index]),
                         {.optimizer = class_name(), .arguments = std::move(arguments)}, global_step(),
                         states_of(index))
      .value();
}

// A flag, SGD's `stat`, is 1 until the first update.
void RowOptimizer::note_first_update(std::size_t index) const {
  Tensor zero(DType::float32, {});
  *zero.data<float>() = 0;
  for (const graph::OptimizerState& state : row_.optimizer.states)
    for (const State& kept : states_)
      if (state.is_scalar && kept.name == state.name)
        graph::apply("assign", {Value(kept.parameters[index]), Value(zero)});
}

void RowOptimizer::update(std::size_t index, const Update& update) {
  if (graph::served_number(*updated_parameters()[index])) {  // Optimizer::run gives them to servers together
    set_served_rule(index, update);
    return note_first_update(index);
  }
  std::vector<Value> inputs{updated_parameters()[index], update.gradient, update.learning_rate};
  for (const std::string_view name : row_.optimizer.inputs) add_input(name, index, inputs);
  if (row_.optimizer.inputs.empty())
    for (const State& state : states_) inputs.emplace_back(state.parameters[index]);
  if (update.changing_decay.defined()) inputs.push_back(update.changing_decay);
  graph::Attributes attributes = arguments_;
  attributes.set("weight_decay", update.weight_decay);
  attributes.set("loss_scale", update.loss_scale);
  graph::apply_all(row_, inputs, attributes);
}

}  // namespace muster::nn
