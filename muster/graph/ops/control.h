// Private to graph: graphs inside of nodes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/graph/function.h"
#include "muster/graph/nodes.h"
#include "muster/graph/ops/ops.h"

namespace muster::graph {

const Op& cond_op();
const Op& while_loop_op();

// A graph without parameters or captured tensors: what its code used of the trace around it are its last
// inputs, and `borrowed` holds them in that order.
struct SubGraph {
  GraphPtr graph;
  std::vector<Value> borrowed;
};

// Traces `body` on new inputs of `types`, inside the current trace. An error when it has an effect.
SubGraph trace_inside(std::string name, std::span<const TensorType> types, const Body& body);

std::vector<TensorType> output_types(const Graph& graph);

}  // namespace muster::graph
