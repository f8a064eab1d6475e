// Ops on tensors: Python's operators, methods of Tensor and functions of module `_core`.
#pragma once

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

void bind_operators(nb::class_<graph::Value>& tensor);

}  // namespace muster::python
