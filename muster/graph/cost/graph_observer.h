// GraphObserver: who sees what functions trace before it is compiled. Public for train.
#pragma once

#include <span>

#include "muster/graph/nodes.h"
#include "muster/graph/plan.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {

class GraphObserver {
 public:
  virtual ~GraphObserver() = default;
  // `graph` is about to be compiled for a call with `inputs`; it may be changed. True: something has changed
  // that the trace depends on, and the function is traced again. An error is that of the call.
  virtual Result<bool> compiling(Graph& graph, std::span<const Tensor> inputs,
                                 const PlanOptions& options) = 0;
};
// Null, the default: none. Set before computing; borrowed from then on.
void observe_graphs(GraphObserver* observer);

}  // namespace muster::graph
