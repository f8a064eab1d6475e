// Private to graph: overlap of collective calls with the nodes after them.
#pragma once

#include <cstddef>
#include <vector>

#include "muster/graph/nodes.h"

namespace muster::graph {

struct Overlap {
  // By node: for a collective one the first node that must not begin before the call is done, or the number
  // of nodes; for others 0. It reads what the call makes, or it changes something for good: a step whose call
  // fails leaves parameters as they were.
  std::vector<std::size_t> joins;
  // Whether anything is computed between any call and its join.
  bool any = false;
  // By node: whether a call is worth another thread. Something is computed until it is joined, or, of a send
  // or receive, until the next one begins that is; and a send is large: small ones are gone before a thread
  // wakes up.
  std::vector<bool> beside;
};
Overlap overlap_of(const Graph& graph);

}  // namespace muster::graph
