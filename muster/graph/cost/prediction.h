// Prediction: how long a step will take each of some workers of this machine, what it sends and holds, told
// before it runs. Public for train.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/call_times.h"
#include "muster/graph/plan.h"
#include "muster/graph/sharding/choice.h"

namespace muster::graph {

class KnownTimes;

// Steps of one op, or calls of one kind among as many workers.
struct OpGroup {
  std::string name;  // "matmul", "all_reduce of 4 workers"
  bool is_call = false;
  std::size_t steps = 0;
  std::size_t not_timed = 0;   // of these: they count with no time
  double seconds = 0;          // of all of them together
  std::size_t sent_bytes = 0;  // by a worker
};

// A group of its own, of no steps: what a run takes from one step of the plan to the next.
inline constexpr std::string_view between_steps = "(from step to step)";
// Likewise, and a call: what a stage of a placed network waits for the others.
inline constexpr std::string_view waiting_for_stages = "(waiting for other stages)";

struct Prediction {
  std::uint32_t workers = 1;
  int cores = 1;
  std::vector<OpGroup> groups = {};  // the slowest first
  double computing_s = 0;            // the sums over groups
  double calls_s = 0;
  double hidden_s = 0;  // of the calls: what goes on while something is computed
  std::size_t sent_bytes = 0;
  std::size_t peak_bytes = 0;
  std::size_t runs = 0;    // in which the kernels were timed
  std::size_t copies = 1;  // that ran at once
  std::size_t stages = 0;  // of a placed network: the times are those of a worker of the busiest
  int threads = 1;         // of each worker
  double reading_s = 0;    // processor time of a thread beside, that makes the batch of a step

  double step_without_reading_s() const { return computing_s + calls_s - hidden_s; }
  double step_s() const { return step_without_reading_s() + reading_shown_s(); }
  // How many times longer a kernel takes than it was timed: workers share cores where these are fewer.
  double sharing() const;
  // What reading adds to a step: what no core is free for, or what takes longer than the computing.
  double reading_shown_s() const;
};

struct PredictionOptions {
  std::uint32_t workers = 1;         // of this machine, all of this step
  int cores = 1;                     // that they may use
  const CallTimes* calls = nullptr;  // borrowed; null: calls are not timed
  KnownTimes* known = nullptr;       // borrowed; null: every kernel is timed
};

// Compiles `graph` as the plan of this process, and times it (step_times.h): `inputs` are those of a run. The
// parameters stay as they are.
Result<Prediction> predict(const Graph& graph, const PlanOptions& options, std::span<const Tensor> inputs,
                           const PredictionOptions& settings);
// Several graphs that run one after the other in each step; of the peaks the highest counts.
Prediction joined(const Prediction& first, const Prediction& second);

// The graphs of one step as the first worker of `layout` computes them (sharding/choice.h), joined. An error
// says why a step cannot be divided so.
struct StepGraph {
  const Graph* graph = nullptr;
  std::span<const Tensor> inputs;
};
Result<Prediction> predict(std::span<const StepGraph> step, const PlanOptions& options,
                           const StepLayout& layout, const PredictionOptions& settings);

// Many lines: the sum, and a line for each group.
std::string to_string(const Prediction& prediction);

// Seconds for people: "1.2 ms".
std::string time_text(double seconds);

// As OpGroup has it, of a node of a plan.
std::string group_name(const Node& node, std::uint32_t workers);

std::shared_ptr<KnownTimes> make_known_times();

}  // namespace muster::graph
