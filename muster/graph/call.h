// Calls of ops by their schema: the function behind every function of an op in C++ and Python.
#pragma once

#include <span>

#include "muster/graph/op.h"

namespace muster::graph {

// The dtype that tensors of these two meet in: floating wins over whole, whole over bool, the wider over the
// narrower; unsigned meets signed in a signed one that holds both (int64 for uint32).
DType promoted(DType a, DType b);

// The row `name`, which has to be there.
const Op& required_op(std::string_view name);

// The results of the op for inputs of any dtypes (Schema::promotion). Throws where an attribute that its
// schema lists is out of its range; `attributes` without it means its default.
Values call_op(const Op& op, std::span<const Value> inputs, const Attributes& attributes = {});

}  // namespace muster::graph
