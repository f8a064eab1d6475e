// Private to graph: an all_reduce of what several workers make. Each of them reduces its own, with the same
// worker of the other copies of the network.
#pragma once

#include <cstddef>
#include <vector>

#include "muster/graph/nodes.h"

namespace muster::graph {

// Every all_reduce that is not placed becomes one for each of its inputs. By node, a number for those that
// were one; 0 elsewhere.
std::vector<std::size_t> split_reductions(Graph& graph);

// Those that stay together become one again: `next` joins `node`; when all have joined, finish_reduction.
void join_reduction(Node& node, const Node& next);
void finish_reduction(Node& node);

}  // namespace muster::graph
