// Private to graph and nn: updates of parameters whose state, or who themselves, are divided over ranks
// (ZeRO).
#pragma once

#include "muster/graph/nodes.h"

namespace muster::graph {

// Each rank makes its piece of a divided parameter's update, from its piece of the state and of the gradient.
// Where the parameter itself is whole, the new pieces are gathered; where it is not, it is gathered for each
// use of it. Parameters change behind all collective calls, so that a step that fails in one has changed
// nothing. A graph of which nothing is divided stays as it is. The types of divided parameters become those
// of the pieces. An error names what writes to a divided parameter and cannot do so in pieces.
Result<> divide_updates(Graph& graph);

// Whether an update computes each element for itself, so that it can be made in pieces.
bool is_elementwise_update(const Op& op);

}  // namespace muster::graph
