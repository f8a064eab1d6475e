// Operations that `map` accepts from Python: transforms of the library, and functions.
#pragma once

#include <vector>

#include "muster/data/data.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// A built-in transform as Python holds it.
struct Transform {
  data::OperationPtr operation;
};

// The operations that `object` names: one transform or function, or a list or tuple of them. A function is
// called with the numpy arrays of the input columns of one row, on the iterator's thread with the interpreter
// lock, and returns one array or number, or a tuple with as many as it was given.
std::vector<data::OperationPtr> operations_from(nb::handle object);

}  // namespace muster::python
