// Private to graph: a graph that was compiled. Nothing of it changes once it is made: it is run by a Runner
// and shown by explain().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/graph/execution/kernels.h"
#include "muster/graph/execution/memory.h"
#include "muster/graph/partition/partition.h"
#include "muster/graph/plan.h"

namespace muster::graph {

// One kernel call.
struct PlannedStep {
  enum class Kind { compute, reduction, send, receive };

  Kind kind = Kind::compute;
  void (*run)(const KernelCall&) = nullptr;
  Prepared prepared;
  std::string_view kernel;
  std::size_t node = 0;        // the first
  std::size_t nodes = 1;       // more than one: updates that run as one
  bool is_async = false;       // a call that is worth another thread
  std::size_t wait_count = 0;  // how many of the plan's collective calls must be done before

  bool is_collective() const { return kind != Kind::compute; }
};

// A parameter as the plan uses it.
struct PlannedParameter {
  ParameterPtr parameter;
  ParameterFormatPtr format;  // null: plain
  bool is_written = false;
};

// What one worker does of a graph.
struct PlannedStage {
  StageIndex index;                    // of one worker: the graph is whole
  std::vector<StageOutput> outputs;    // by output of the whole graph; empty: the graph is whole
  std::optional<Partition> partition;  // nothing: nothing in it is placed
  // Of a parameter of the whole graph, when the plan was made.
  struct Home {
    ParameterPtr parameter;
    std::optional<std::uint32_t> rank;   // of the worker that had it
    std::optional<TensorLayout> pieces;  // nothing: it was whole
    bool is_there() const;
  };
  std::vector<Home> homes;

  // Whether all parameters still live there.
  bool is_valid() const;
};

struct CompiledPlan {
  static constexpr std::size_t no_step = static_cast<std::size_t>(-1);

  Graph graph;
  PlannedStage stage;
  int threads = 1;                 // that kernels were chosen for
  std::vector<FormatPtr> formats;  // by value
  Layout layout;
  std::vector<PlannedStep> steps;
  std::vector<PlannedParameter> parameters;
  std::vector<std::size_t> collectives;  // the steps that take part in one
  std::size_t first_update = no_step;    // the first step that updates parameters
  bool has_overlap = false;              // whether any collective call may go on beside other steps
  bool has_async_transfers = false;      // whether any send or receive is worth another thread
  bool detects_anomalies = false;        // each node is looked at by itself: none was fused

  // Of one step.
  std::span<const Node> nodes_of(const PlannedStep& step) const {
    return std::span(graph.nodes).subspan(step.node, step.nodes);
  }
};

// Divides, fuses, chooses kernels and plans the memory. Parameters that a placed graph places get their home.
Result<CompiledPlan> compile(const Graph& graph, const PlanOptions& options);

}  // namespace muster::graph
