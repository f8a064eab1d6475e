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
struct PartOutput {
  std::size_t index = 0;              // in the outputs of its part, unless it is absent
  std::optional<Tensor> absent;       // who has it
  std::optional<std::uint32_t> home;  // one worker alone has it; else all have
};

struct Partition {
  Graph graph;                      // the part of one worker; of the outputs, those that it has
  std::vector<PartOutput> outputs;  // by output of the whole graph
  // What it receives: the value here, and that of the graph in `whole`.
  std::vector<std::pair<ValueId, ValueId>> received;
  Graph whole;  // that was divided
  std::vector<std::pair<ParameterPtr, Parameter::Home>> homes;
  Parts parts;
};

// Whether anything of it belongs to one of several workers: a node, a parameter, an input.
bool is_placed(const Graph& graph, std::span<const std::optional<std::uint32_t>> input_homes = {});

// The part of worker `division.rank`. Of the workers each computes the same division, and all inputs of a
// graph are inputs of each part. An error when something is placed where no worker is.
Result<Partition> partition(Graph whole, const Division& division,
                            std::span<const std::optional<std::uint32_t>> input_homes = {});

// How a placed graph would be divided over as many workers as its placement names.
Result<Parts> divided_as_placed(const Graph& whole);

}  // namespace muster::graph
