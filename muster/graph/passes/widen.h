// Private to graph: bfloat16 by kernels for float32.
#pragma once

#include "muster/graph/execution/execute.h"

namespace muster::graph {

bool has_bfloat16(const Signature& signature);

// For signatures with bfloat16 that no kernel of `op` takes itself: its first kernel that works in float32,
// between copies of the tensors. Inputs are widened, results rounded to the nearest; what the kernel does
// between stays in float32.
Result<Chosen> choose_widened(const Op& op, const Signature& signature);

}  // namespace muster::graph
