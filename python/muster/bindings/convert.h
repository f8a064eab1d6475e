// Python values as tensors.
#pragma once

#include <optional>

#include "muster/tensor/tensor.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// Python's int, bool or float.
bool is_number(nb::handle object);

// A tensor with a copy of the elements of `object`: a number, nested lists or tuples of numbers, anything
// with the buffer protocol (numpy arrays and scalars, array.array, memoryview), or anything numpy can read.
// Without `dtype` an array keeps its own, Python's float becomes float32, int int64 and bool bool_.
Tensor tensor_copied(nb::handle object, std::optional<DType> dtype);

// A tensor over the memory of `object` itself, which must be a contiguous buffer (a numpy array) of a dtype
// that tensors have; `object` is kept alive as long as a tensor uses its memory.
Tensor tensor_shared(nb::handle object);

// The elements of `from` as another dtype, rounded as C++ rounds; the tensor itself when it has that dtype.
Tensor tensor_as(const Tensor& from, DType dtype);

}  // namespace muster::python
