// Rotary positions: pairs of elements of a row, half a row apart, are turned.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/base/base.h"

namespace muster::kernels {

struct RotarySize {
  std::int64_t rows = 1;
  std::int64_t depth = 2;  // elements of a row, an even number
  // By axis of x but the last: its size, and how many rows of the tables one step along it is (0: all have
  // the same).
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> table_steps;
  bool adjoint = false;  // by the transposed matrix
};

// With a row as two halves (a, b): y = (a cos_a - b sin_a, b cos_b + a sin_b), or adjoint (a cos_a + b sin_b,
// b cos_b - a sin_a). x and y float32, float64 or bfloat16, the tables float64 beside float64 and else
// float32.
void rotary(const RotarySize& size, DType dtype, const void* x, const void* cos, const void* sin, void* y,
            int threads);

}  // namespace muster::kernels
