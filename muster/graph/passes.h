// Private to graph: rewriting a graph before it is compiled. Each pass keeps what the graph computes.
#pragma once

#include "muster/graph/nodes.h"

namespace muster::graph {

// Drops nodes that no output and no effect needs.
void remove_dead(Graph& graph);
// matmul, bias_add and relu or tanh in a row become one `dense`.
void fuse_dense(Graph& graph);

}  // namespace muster::graph
