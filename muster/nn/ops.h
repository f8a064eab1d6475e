// The ops as functions of values: what construct code calls.
#pragma once

#include "muster/graph/graph.h"
#include "muster/nn/op_functions.h"  // IWYU pragma: export
#include "muster/nn/ops_array.h"     // IWYU pragma: export
#include "muster/nn/ops_image.h"     // IWYU pragma: export
#include "muster/nn/ops_math.h"      // IWYU pragma: export

namespace muster::nn::ops {

using graph::Value;

// The product of matrices, with numpy's rules for others: a vector is a row on the left and a column on the
// right and its axis goes; leading axes broadcast.
Value matmul(const Value& a, const Value& b, bool transpose_a = false, bool transpose_b = false);
// One size may be -1: what the others leave.
Value reshape(const Value& x, const Shape& shape);
// (N, ...) to (N, all the rest).
Value flatten(const Value& x);

}  // namespace muster::nn::ops
