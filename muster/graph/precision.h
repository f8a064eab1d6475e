// Private to graph: effect of a PrecisionScope on the inputs of an op.
#pragma once

#include <optional>
#include <span>

#include "muster/graph/op.h"

namespace muster::graph {

// What two floating dtypes meet in under the scope around; nothing when it has no opinion.
std::optional<DType> meeting_dtype(DType a, DType b);

// For apply_all: the inputs of `op` as the scope around wants them, and the dtype that its results are cast
// to.
struct Prescribed {
  Values inputs;
  std::optional<DType> results = {};
};
// Nothing when they stay as they are.
std::optional<Prescribed> prescribed(const Op& op, std::span<const Value> inputs);

}  // namespace muster::graph
