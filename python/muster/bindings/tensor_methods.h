// The methods of Tensor that move, join and pick elements.
#pragma once

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

void bind_array_methods(nb::class_<graph::Value>& tensor);

}  // namespace muster::python
