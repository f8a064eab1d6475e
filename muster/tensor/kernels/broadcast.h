// numpy's broadcasting as few loops: axes that all operands walk alike are one loop.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "muster/base/base.h"

namespace muster::kernels {

struct BroadcastLoops {
  std::int64_t count = 0;           // elements of the result
  std::vector<std::int64_t> sizes;  // outermost first; the last loop is the run
  std::vector<std::vector<std::int64_t>>
      strides;  // by operand and loop: 0 where it is repeated, else in elements
};

// Shapes are aligned at the last axis; sizes are those of `out` or 1.
BroadcastLoops broadcast_loops(const Shape& out, std::span<const Shape> operands);

// Steps through `shape` for each axis of `out`: 0 along axes that are repeated.
std::vector<std::int64_t> broadcast_strides(const Shape& shape, const Shape& out);

// Calls body(offsets of the operands, offset of the result, count) for runs that cover results [begin, end).
template <std::size_t operands, class Body>
void for_each_run(const BroadcastLoops& loops, std::int64_t begin, std::int64_t end, const Body& body) {
  const std::size_t inner = loops.sizes.size() - 1;
  const std::int64_t run = loops.sizes[inner];
  std::vector<std::int64_t> index(inner);
  std::array<std::int64_t, operands> starts{};  // of the operands' runs
  std::int64_t rest = begin / run;
  for (std::size_t loop = inner; loop-- > 0; rest /= loops.sizes[loop]) {
    index[loop] = rest % loops.sizes[loop];
    for (std::size_t k = 0; k < operands; ++k) starts[k] += index[loop] * loops.strides[k][loop];
  }
  std::int64_t skipped = begin % run;  // of the first run; the others are whole
  for (std::int64_t at = begin; at < end; skipped = 0) {
    const std::int64_t length = std::min(run - skipped, end - at);
    std::array<std::int64_t, operands> offsets = starts;
    for (std::size_t k = 0; k < operands; ++k) offsets[k] += skipped * loops.strides[k][inner];
    body(offsets, at, length);
    at += length;
    for (std::size_t loop = inner; loop-- > 0;) {
      for (std::size_t k = 0; k < operands; ++k) starts[k] += loops.strides[k][loop];
      if (++index[loop] < loops.sizes[loop]) break;
      for (std::size_t k = 0; k < operands; ++k) starts[k] -= index[loop] * loops.strides[k][loop];
      index[loop] = 0;
    }
  }
}

}  // namespace muster::kernels
