// Functions of one number, element by element. Outputs may be inputs.
#pragma once

#include <cstdint>

#include "muster/base/base.h"

namespace muster::kernels {

enum class Unary {
  neg,
  abs,
  sign,
  square,
  reciprocal,
  sqrt,
  rsqrt,
  exp,
  expm1,
  log,
  log1p,
  erf,
  sin,
  cos,
  floor,
  ceil,
  round  // to the nearest; halves to the even one
};

// Floating; neg, abs, sign and square also int32 and int64, where the smallest stays the smallest.
void unary(Unary kind, DType dtype, const void* x, void* y, std::int64_t count, int threads);

enum class Predicate { isnan, isinf, isfinite, logical_not };

// Floating; logical_not (x == 0) any.
void predicate(Predicate kind, DType dtype, const void* x, bool* y, std::int64_t count, int threads);

// x between `low` and `high`; NaN stays. Floating, int32, int64.
struct ClipBounds {
  double low = 0;
  double high = 0;
};
void clip(ClipBounds bounds, DType dtype, const void* x, void* y, std::int64_t count, int threads);

}  // namespace muster::kernels
