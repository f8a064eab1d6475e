// Private to train: the comparison of what workers give a step over a mesh, where each is given the whole
// batch, and of how their scripts divide it.
#pragma once

#include <span>

#include "muster/graph/cost/graph_observer.h"

namespace muster::train {

// Of the first graph that trains: a call of all workers, in a job that does not recover, since who comes back
// would make it alone. An error names the input, or what is divided, that differs.
Result<> compare_shared_inputs(const graph::Graph& graph, std::span<const Tensor> inputs);

// Compares them before graphs are compiled, where nothing else observes these. Every worker calls it alike.
void watch_shared_inputs();

}  // namespace muster::train
