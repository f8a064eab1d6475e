// Private to graph: choosing a kernel, and running one op at once.
#pragma once

#include "muster/graph/kernel.h"

namespace muster::graph {

struct Chosen {
  const Kernel* kernel = nullptr;
  Prepared prepared;
};
// The first kernel that works for this signature, prepared for it.
Result<Chosen> choose_kernel(const Op& op, const Signature& signature);

// Eager mode: the same row, outside any graph. Inputs are concrete or parameters.
Result<Values> execute(const Op& op, std::span<const Value> inputs, const Attributes& attributes,
                       const RunContext& context);

}  // namespace muster::graph
