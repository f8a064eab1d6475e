// Tensors and their elements as text and as Python numbers.
#pragma once

#include <string>

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// The element at `index` (row-major order) as a Python bool, int or float.
nb::object element_object(const Tensor& tensor, std::int64_t index);

// For what a trace cannot give: where the function may run op by op instead, an error that makes it do so.
void leave_trace(const std::string& what);

// A scalar as numpy prints it, without loading numpy; an array as numpy prints it. `self` is its Python
// object.
std::string text_of(const graph::Value& value, nb::handle self);

// The text with shape and dtype, for people who look at a value.
std::string representation_of(const graph::Value& value, nb::handle self);

}  // namespace muster::python
