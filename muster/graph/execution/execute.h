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

// The whole of a divided parameter for an op that runs by itself. Workers gather it where all of them run the
// same code, in a function that runs op by op (falls_back()); elsewhere that would wait for ranks that may
// never come, and is an error.
Result<Tensor> whole_of(Parameter& parameter, const RunContext& context);

// Eager mode: the same row, outside any graph. Inputs are concrete or parameters.
Result<Values> execute(const Op& op, std::span<const Value> inputs, const Attributes& attributes,
                       const RunContext& context);

}  // namespace muster::graph
