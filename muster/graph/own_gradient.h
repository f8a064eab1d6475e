// Private to graph: gradients that code gives itself.
#pragma once

#include <cstddef>
#include <span>

#include "muster/graph/function.h"
#include "muster/graph/nodes.h"

namespace muster::graph {

// The gradients of the inputs by `rule`, checked; an Exception says what is wrong with them.
Values gradients_by(const GradientRule& rule, std::span<const Value> inputs, std::span<const Value> outputs,
                    std::span<const Value> output_gradients);

// Whether a node makes `id`.
bool makes_value(const Graph& graph, ValueId id);

}  // namespace muster::graph
