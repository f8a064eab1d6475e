// Second public header of `graph` (tools/check_layout.py): parameters that live on parameter servers. A
// worker keeps a copy of each; where an optimizer would update it, it gives the gradient to the servers and
// takes what they have made of those of all workers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "muster/graph/op.h"
#include "muster/graph/parameter.h"

namespace muster::graph {

// How the optimizer of a served parameter updates it: its class and its arguments.
struct UpdateRule {
  std::string optimizer = {};
  Attributes arguments = {};
  friend bool operator==(const UpdateRule&, const UpdateRule&) = default;
};

// Main thread, as all that follows but for what kernels call.
void serve(const ParameterPtr& parameter);
// Its number, in the order of serve(), which is the same in all workers.
std::optional<std::int64_t> served_number(const Parameter& parameter);
std::int64_t served_count();
struct ServedParameter {
  std::string name = {};
  TensorType type = {};
  std::optional<UpdateRule> rule = {};
};
ServedParameter served_parameter(std::int64_t number);
// An error where another optimizer updates it already.
Result<> set_update_rule(std::int64_t number, UpdateRule rule);

// One parameter's part of a step.
struct ServedUpdate {
  std::int64_t number = 0;
  float learning_rate = 0;
  std::span<const float> gradient = {};
  std::span<const float> before = {};  // its elements as they are here
  std::span<float> after = {};
};
// Carries out a step of all served parameters of an optimizer that has made `steps` steps.
using ServedUpdater = Result<> (*)(std::int64_t steps, std::span<const ServedUpdate> updates);
void set_served_updater(ServedUpdater updater);
ServedUpdater served_updater();

// The op by which `parameters` get what the servers have made of their `gradients`.
void update_served(const Value& global_step, std::span<const ParameterPtr> parameters,
                   std::span<const Value> gradients, std::span<const Value> rates);

}  // namespace muster::graph
