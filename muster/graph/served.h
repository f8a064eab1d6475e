// Second public header of `graph` (tools/check_layout.py): parameters that live on parameter servers.
//
// Of a dense one a worker keeps a copy; where an optimizer would update it, it gives the gradient to the
// servers and takes what they have made of those of all workers. Of a table (an embedding) a worker keeps
// nothing: it looks rows up, and notes the gradients of those on the way back, until the optimizer's step
// pushes them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/graph/op.h"
#include "muster/graph/parameter.h"

namespace muster::graph {

// How the optimizer of a served parameter updates it: its class and its arguments.
struct UpdateRule {
  std::string optimizer = {};
  Attributes arguments = {};
  friend bool operator==(const UpdateRule&, const UpdateRule&) = default;
};

// Main thread, as all that follows but for what kernels call. A table (Parameter::is_table) is left to the
// servers.
void serve(const ParameterPtr& parameter);
// Its number, in the order of serve(), which is the same in all workers.
std::optional<std::int64_t> served_number(const Parameter& parameter);
std::int64_t served_count();
struct ServedParameter {
  ParameterPtr parameter = {};
  std::optional<UpdateRule> rule = {};
  ParameterPtr steps = {};  // that its optimizer has made, int32 (1,)
  // What its optimizer keeps for it, which is on the servers, too: here as it was when the job began.
  std::vector<ParameterPtr> states = {};
};
const ServedParameter& served_parameter(std::int64_t number);
// An error where another optimizer updates it already. `steps` counts those of this one.
Result<> set_update_rule(std::int64_t number, UpdateRule rule, const ParameterPtr& steps,
                         std::vector<ParameterPtr> states);
// Of which served parameter it is a state, and which one of its states.
struct ServedState {
  std::int64_t number = 0;
  std::size_t index = 0;
};
std::optional<ServedState> served_state(const Parameter& parameter);

// ---- What `train` does for the ops. Steps are those of all optimizers of served parameters, together

// One parameter's part of an optimizer's step.
struct ServedUpdate {
  std::int64_t number = 0;
  float learning_rate = 0;
  std::span<const float> gradient = {};
  std::span<const float> before = {};  // its elements as they are here
  std::span<float> after = {};
};
// How far the job is, and how far the optimizer that makes a step.
struct ServedSteps {
  std::int64_t all = 0;
  std::int64_t own = 0;
};
// Rows of a table: distinct ids or not, ids.size() * width numbers.
struct ServedLookup {
  std::int64_t number = 0;
  std::span<const std::uint64_t> ids = {};
  std::span<float> rows = {};
};
struct ServedGradient {
  std::int64_t number = 0;
  std::vector<std::uint64_t> ids = {};
  std::vector<float> rows = {};
};
struct ServedCalls {
  Result<> (*update)(const ServedSteps& steps, std::span<const ServedUpdate> updates) = nullptr;
  Result<> (*look_up)(std::int64_t steps, const ServedLookup& lookup) = nullptr;
  // The next update of the table pushes it.
  Result<> (*note)(ServedGradient gradient) = nullptr;
};
void set_served_calls(const ServedCalls& calls);
// An error where this process has none.
Result<ServedCalls> served_calls();

// Each noted gradient gives the table's row of zeros this gradient, so that what changes it on its way to
// the optimizer, or leaves one out, is found. A power of two, so that sums are exact; too small to count in a
// norm.
inline constexpr float noted_gradient = 0x1p-60F;

// The op by which `parameters` get what the servers have made of their `gradients`.
void update_served(const Value& global_step, std::span<const ParameterPtr> parameters,
                   std::span<const Value> gradients, std::span<const Value> rates);

// Ids that a table does not have: an error, or rows of zeros, which get no gradient.
enum class OutOfRange { error, zeros };
// Rows (..., width) of a table (rows, width) for ids (...), int32 or int64: on servers where it is there,
// else here.
Value look_up(const ParameterPtr& table, const Value& ids, OutOfRange out_of_range = OutOfRange::error);

}  // namespace muster::graph
