// Branches and loops that are decided while a graph runs.
#pragma once

#include <functional>
#include <span>

#include "muster/graph/function.h"
#include "muster/graph/value.h"

namespace muster::graph {

// What `yes` or `no` gives, as `pred` (one element; bool, or a number that is not 0) says. Inside a trace
// both are traced, into a graph each, and the run computes one of them; what they use of the code around them
// becomes an input. They must give values of the same types, and neither updates parameters nor takes part in
// collectives: the other ranks may go the other way. Outside a trace one of them is called. The gradient
// passes; the branch is computed again for it.
Values cond(const Value& pred, const std::function<Values()>& yes, const std::function<Values()>& no);

// state = body(state) as long as test(state) (one element) is true; `init` is the first state. Inside a trace
// both are traced once; the types of the state stay. Outside, they are called. There is no gradient in a
// trace.
Values while_loop(const Body& test, const Body& body, std::span<const Value> init);

}  // namespace muster::graph
