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
      : layout_(layout), memory_bytes_(memory_bytes), is_searched_(!layout) {}

  Result<bool> compiling(graph::Graph& graph, std::span<const Tensor> inputs,
                         const graph::PlanOptions& options) override;

  // Decided at the first step, not by the script.
  bool is_searched() const { return is_searched_; }
  // Nothing: not decided yet.
  const std::optional<graph::StepLayout>& layout() const { return layout_; }
  // The parameters are about to be set to what a recovery point holds, and divided as they were then;
  // `layout` is what was decided when it was made. Nothing, or that of another number of workers: where the
  // script leaves it open it is decided anew. Every worker calls it alike.
  Result<> go_back_to(const std::optional<graph::StepLayout>& layout);

 private:
  Result<> decide(const graph::Graph& graph, std::span<const Tensor> inputs,
                  const graph::PlanOptions& options);
  Result<bool> divide_weights(const graph::Graph& graph);
  Result<> begin(const graph::StepLayout& layout);

  std::optional<graph::StepLayout> layout_;
  std::optional<std::size_t> memory_bytes_;
  bool is_searched_;
  bool has_set_zero_ = false;
  bool has_cut_ = false;  // the samples of a step that trains
  // That were decided about; those that are gone may leave their address to others.
  std::map<const graph::Parameter*, std::weak_ptr<graph::Parameter>> known_;
};

// From now on steps are divided so; data 0: as rank 0 decides; data and model 1: not at all. Every worker
// calls it alike, before its first step.
Result<> plan_steps(std::uint32_t data, std::uint32_t model, std::optional<std::size_t> memory_bytes = {});

}  // namespace muster::train
