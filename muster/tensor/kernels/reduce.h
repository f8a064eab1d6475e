// Sums, extremes and products over axes. Results repeat: their order depends on the shapes alone.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/base/base.h"

namespace muster::kernels {

enum class Reduce { sum, mean, max, min, prod, sum_of_squares };

// A walk over a tensor: neighbouring axes that share a fate are one loop.
struct ReduceLoops {
  struct Loop {
    std::int64_t size = 1;
    std::int64_t stride = 1;  // in elements
  };
  std::vector<Loop> kept;    // outermost first
  std::vector<Loop> folded;  // likewise
  bool rows = false;         // the innermost loop of all is a folded one
  std::int64_t outputs = 1;
  std::int64_t inputs_each = 1;  // elements that become one
};

// `folded[axis]` says which axes become one element.
ReduceLoops reduce_loops(const Shape& shape, const std::vector<bool>& folded);

// float32, float64 (sums and products run in double, NaN is the extreme), bfloat16 (as float32, rounded
// once), int32, int64 (wrapping; mean floating only). The extreme of nothing is the dtype's other end.
void reduce(Reduce kind, DType dtype, const ReduceLoops& loops, const void* x, void* out, int threads);
// The definition: one element after another.
void reduce_reference(Reduce kind, DType dtype, const ReduceLoops& loops, const void* x, void* out);

// dx = dy times the product of the other elements, zeros included. dy is shaped as the product.
void prod_grad(DType dtype, const ReduceLoops& loops, const void* dy, const void* x, void* dx, int threads);

// A line of `size` elements for each (outer, inner), `inner` elements apart.
struct LineSize {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;
};
LineSize line_size(const Shape& shape, std::size_t axis);

// The first index of the greatest (or smallest) element of each line; NaN counts as extreme. float32,
// float64, int32, int64.
void arg_extreme(bool greatest, DType dtype, const LineSize& lines, const void* x, std::int32_t* out,
                 int threads);

}  // namespace muster::kernels
