// Private to graph: times of the steps of a plan on this machine, without the other workers.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/graph/execution/compiled_plan.h"

namespace muster::graph {

// Seconds of steps that were timed, by what decides how long they take: the op, its kernel, the types and
// formats of what it reads and writes, its attributes, and how many threads it has.
class KnownTimes {
 public:
  std::optional<double> find(const std::string& key) const;
  // The mean of all that come under one key.
  void add(const std::string& key, double seconds);

 private:
  struct Sum {
    double seconds = 0;
    std::size_t count = 0;
  };
  std::map<std::string, Sum, std::less<>> times_;
};

struct TimedPlan {
  CompiledPlan plan;
  std::vector<std::optional<double>> seconds;  // by step; nothing: a call, or what cannot run by itself
  double between_s = 0;                        // from step to step, all together
  std::size_t runs = 0;                        // 0: all of it was known
};

struct TimingOptions {
  std::size_t copies = 1;       // that run at once, as the workers that have a core each do
  KnownTimes* known = nullptr;  // borrowed; null: nothing is known, and nothing is kept
};

// Compiles `graph` and runs it some times on `inputs`, with parameters of its own that hold made-up numbers:
// those of the graph stay as they are. What talks to other workers, calls Python or repeats until a value
// says so is left out: what it gives is made up, too. An error is that of compiling, or of an op.
Result<TimedPlan> time_steps(const Graph& graph, const PlanOptions& options, std::span<const Tensor> inputs,
                             const TimingOptions& timing);

// `graph` with parameters of its own, divided as those are, which hold made-up numbers once they are asked
// for, unless `holds_numbers` is false: then they are zeros. `known`: those that were replaced before, of
// other graphs of the same step.
using ReplacedParameters = std::map<const Parameter*, ParameterPtr>;
Graph with_own_parameters(const Graph& graph, ReplacedParameters& known, bool holds_numbers = true);

}  // namespace muster::graph
