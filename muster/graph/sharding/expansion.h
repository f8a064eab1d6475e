// Private to graph: ops whose parts, over samples that are cut, are no sum of what the op gives.
#pragma once

#include <optional>

#include "muster/graph/nodes.h"

namespace muster::graph {

// What a node computes, by ops whose rows have rules: the graph's inputs and outputs are those of the node.
// The mean of a loss is a sum by the number of labels that count; the batch's statistics are sums over the
// samples. Nothing where the node is none of these. Values are those of the node within rounding.
Result<std::optional<Graph>> expansion_of(const Graph& graph, const Node& node);

}  // namespace muster::graph
