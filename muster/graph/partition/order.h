// Private to graph: the order in which the workers of a divided graph run their nodes.
#pragma once

#include <cstddef>
#include <vector>

#include "muster/graph/partition/places.h"

namespace muster::graph {

// What a node costs, in nanoseconds of some machine: the same on all of them, as the order is to be.
double cost_of(const Graph& graph, const Node& node);

// An order of the nodes of `graph` in which workers wait less for each other than in program order: the
// indexes of its nodes, or program order where nothing is won, as in a network without micro batches.
//
// Each worker always runs what is furthest into the graph of what can run, and waits rather than make a third
// result for a worker that has begun to use none of the last two. With micro batches that is one part of the
// way forward and one of the way back in turn, once the first part has come back (1F1B: Narayanan et al.,
// PipeDream, 2019), and the parts under way do not grow with their number. Reads and writes of one value keep
// their order, and so do collective calls. `groups`: schedule_transfers.
std::vector<std::size_t> order_for_workers(const Graph& graph, const Places& places,
                                           const std::vector<std::size_t>& groups, std::uint32_t size);

}  // namespace muster::graph
