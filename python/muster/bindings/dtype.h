// dtypes in the Python bindings: one Python object per DType, so that `tensor.dtype is muster.float32` holds.
#pragma once

#include "python/muster/bindings/bindings.h"

namespace muster::python {

// The Python object of `dtype`.
nb::object dtype_object(DType dtype);

// Whether `object` is one of those objects.
bool is_dtype(nb::handle object);

// The DType that `object` names: a muster dtype, its name as a string, a numpy dtype or scalar type, or one
// of Python's bool, int (int64) and float (float32). Raises TypeError for anything else.
DType dtype_from(nb::handle object);

// What makes the text of a tensor by MindSpore's names; invalid where `mindspore` was not imported.
nb::handle mindspore_words();

}  // namespace muster::python
