// Private to graph: draws of dropout, by the rows that drop elements.
#pragma once

#include <cstdint>

#include "muster/graph/kernel.h"
#include "muster/tensor/kernels.h"

namespace muster::graph {

// Attributes that tell the draws of one step apart: `stream` of the dropouts, `part` of the equal parts of a
// batch.
struct DropoutPlace {
  std::uint64_t stream = 0;
  std::uint64_t part = 0;
};
DropoutPlace dropout_place(const Attributes& attributes);
// Of a part of so many samples, in this run.
kernels::DropoutDraw dropout_draw(const RunContext& context, const DropoutPlace& place, std::int64_t samples);

}  // namespace muster::graph
