// Tensors and their elements as text and as Python numbers.
#pragma once

#include <string>

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// The element at `index` (row-major order) as a Python bool, int or float.
nb::object element_object(const Tensor& tensor, std::int64_t index);

// A scalar as numpy prints it, without loading numpy; an array as numpy prints it. `self` is its Python
// object.
std::string text_of(const graph::Value& value, nb::handle self);

// The text with shape and dtype, for people who look at a value.
std::string representation_of(const graph::Value& value, nb::handle self);

}  // namespace muster::python
