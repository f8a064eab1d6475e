// Private to train: predicted times of the steps that this process traces, from kernels that are timed here
// and from the table of call times that `muster explain --parallel` has measured (MUSTER_CALL_TIMES).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/base/call_times.h"
#include "muster/graph/cost/graph_observer.h"
#include "muster/graph/cost/prediction.h"

namespace muster::train {

// Whether it computes gradients, or updates parameters.
bool trains(const graph::Graph& graph);

// A graph as it was traced, and what its first call was given.
struct NotedGraph {
  graph::Graph graph;
  std::vector<Tensor> inputs;
  graph::PlanOptions options;

  bool trains() const { return train::trains(graph); }
};

// The table in the file that MUSTER_CALL_TIMES names, else in that of this machine. Nothing where there is
// none for so many workers. Then the reason is in `problem`.
std::optional<CallTimes> read_call_times(std::uint32_t workers, std::string& problem);

// One line: of which workers, and how long ago; or why there is none.
std::string call_times_text(const std::optional<CallTimes>& times, const std::string& problem);

// From now on passes over data tell how long their items take.
void watch_reading();
// The processor time of the batch of a step; 0: not known.
double reading_seconds();

// For one of so many workers that share this machine. Without the reading of a batch.
Result<graph::Prediction> predict(const NotedGraph& noted, std::uint32_t workers,
                                  const std::optional<CallTimes>& calls, graph::KnownTimes* known);

// Many lines for each of the graphs, or why it is not predicted.
std::string predictions_text(const std::vector<const NotedGraph*>& graphs, std::uint32_t workers);

}  // namespace muster::train
