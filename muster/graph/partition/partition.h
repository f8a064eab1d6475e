// Private to graph: dividing a placed graph over workers. It comes before all other passes, so that these see
// a send and a receive as any other node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "muster/graph/explanation.h"
#include "muster/graph/nodes.h"

namespace muster::graph {

// What one worker gives for an output of the whole graph.
struct StageOutput {
  std::size_t index = 0;              // in the outputs of its part, unless it is absent
  std::optional<Tensor> absent;       // who has it
  std::optional<std::uint32_t> home;  // one worker alone has it; else all have
};

struct StageGraph {
  Graph graph;                       // the part of one worker; of the outputs, those that it has
  std::vector<StageOutput> outputs;  // by output of the whole graph
  // What it receives: the value here, and that of the graph in `whole`.
  std::vector<std::pair<ValueId, ValueId>> received;
  Graph whole;                       // that was divided
  std::vector<ValueId> transferred;  // by value transfer of `partition`: the value of `whole`
  std::vector<std::pair<ParameterPtr, Parameter::Home>> homes;
  Partition partition;
};

// Whether anything of it belongs to one of several workers: a node, a parameter, an input.
bool is_placed(const Graph& graph, std::span<const std::optional<std::uint32_t>> input_homes = {});

// The stage `stage_index.rank`. Each worker computes the same partition, and all inputs of a
// graph are inputs of each part. An error when something is placed where no worker is.
Result<StageGraph> partition(Graph whole, const StageIndex& stage_index,
                             std::span<const std::optional<std::uint32_t>> input_homes = {});

// How a placed graph would be divided over as many workers as its placement names.
Result<Partition> divided_as_placed(const Graph& whole);

}  // namespace muster::graph
