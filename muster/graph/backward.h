// Private to graph: reverse-mode differentiation, of a trace and of a tape alike.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "muster/graph/nodes.h"

namespace muster::graph {

// An Exception that names `what` unless every value exists and is floating.
void require_differentiable(std::span<const Value> values, std::string_view what);

// Whether code writes to a parameter by it, so that gradients may still need what the parameter was: a row
// "snapshot" before it keeps that. Updates of optimizers come when their gradients are there.
bool is_write_of_code(const Op& op);

// The gradients of the sum of `losses` for each of `wrt`, by the nodes' rules, last node first. `graph` may
// grow meanwhile: rules append nodes to a trace. `at` gives the value of an id.
std::vector<Value> backward(const Graph& graph, std::span<const ValueId> losses, std::span<const ValueId> wrt,
                            const std::function<Value(ValueId)>& at);

}  // namespace muster::graph
