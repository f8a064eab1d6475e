// Private to graph: dtypes that kernels do not take, by kernels for wider ones.
#pragma once

#include "muster/graph/execution/execute.h"

namespace muster::graph {

// Whether some dtype of `signature` is not the one that computes for it (computed_in).
bool can_be_widened(const Signature& signature);

// For signatures that no kernel of `op` takes itself: its first kernel that works in wider dtypes, between
// copies of the tensors. Floating numbers are widened first, and whole numbers only where that is not enough:
// masks beside them stay what they are. Inputs are widened, results rounded to the nearest (whole numbers
// take the low bits); what the kernel does between stays wide. A number of uint64 that int64 does not hold
// fails the run.
Result<Chosen> choose_widened(const Op& op, const Signature& signature);

}  // namespace muster::graph
