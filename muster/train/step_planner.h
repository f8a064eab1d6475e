// StepPlanner: divides steps that have no layout in the script (parallel.plan). Public for python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "muster/graph/cost/graph_observer.h"
#include "muster/graph/sharding/choice.h"

namespace muster::train {

// Divides weights where a graph that reads them is first compiled, and the samples of each graph. Main
// thread.
class StepPlanner final : public graph::GraphObserver {
 public:
  // Nothing: how is decided at the first step that trains, by rank 0 for all.
  // `memory_bytes`: a worker may need no more at the peak then; nothing: any.
  explicit StepPlanner(std::optional<graph::StepLayout> layout, std::optional<std::size_t> memory_bytes)
      : layout_(layout), memory_bytes_(memory_bytes) {}

  Result<bool> compiling(graph::Graph& graph, std::span<const Tensor> inputs,
                         const graph::PlanOptions& options) override;

 private:
  Result<> decide(const graph::Graph& graph, std::span<const Tensor> inputs,
                  const graph::PlanOptions& options);
  Result<bool> divide_weights(const graph::Graph& graph);

  std::optional<graph::StepLayout> layout_;
  std::optional<std::size_t> memory_bytes_;
  bool has_cut_ = false;  // the samples of a step that trains
  // That were decided about; those that are gone may leave their address to others.
  std::map<const graph::Parameter*, std::weak_ptr<graph::Parameter>> known_;
};

// From now on steps are divided so; data 0: as rank 0 decides; data and model 1: not at all. Every worker
// calls it alike, before its first step.
Result<> plan_steps(std::uint32_t data, std::uint32_t model, std::optional<std::size_t> memory_bytes = {});

}  // namespace muster::train
