// Index of tensor[...]: what stands between the brackets.
#pragma once

#include "muster/nn/nn.h"
#include "muster/tensor/tensor.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// tensor[index] as numpy means it: whole numbers, slices, None, ..., tensors, arrays and lists of integers or
// bool, and tuples of those. Raises IndexError when it does not fit the shape.
graph::Value indexed(const graph::Value& tensor, nb::handle index);
// The same for Python.
nb::object part_of(nb::handle tensor, nb::handle index);
// tensor[index] = values: the object has another value from then on (set_value).
void set_indexed(nb::handle tensor, nb::handle index, nb::handle values);

}  // namespace muster::python
