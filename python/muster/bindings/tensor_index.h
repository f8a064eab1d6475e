// Parts of tensors, as views that share their elements.
#pragma once

#include "muster/tensor/tensor.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// tensor[index]; negative indices count from the end. IndexError outside of the dimension.
Tensor row(const Tensor& tensor, Py_ssize_t index);

// tensor[index] for a whole number, a slice of the first dimension, or a tuple of those for nested rows.
// Raises IndexError for everything else: that is numpy's trade.
Tensor part(const Tensor& tensor, nb::handle index);

}  // namespace muster::python
