// The methods of Tensor that move, join and pick elements.
#pragma once

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// (values, indices) of the greatest or smallest elements; None is the last axis. All of them, where they need
// not be sorted, stay in their order, as in MindSpore.
nb::tuple topk(const graph::Value& self, std::int64_t k, nb::handle dim, bool largest, bool sorted);

// Another tensor of the same elements, which no write to a parameter changes. While gradients may be noted
// they flow through it: elements alone would cut them off.
graph::Value copied(const graph::Value& value);

void bind_array_methods(nb::class_<graph::Value>& tensor);

}  // namespace muster::python
