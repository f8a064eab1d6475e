// Functions of two numbers, element by element, with numpy's broadcasting.
#pragma once

#include <array>
#include <cstdint>

#include "muster/base/base.h"
#include "muster/tensor/kernels/broadcast.h"

namespace muster::kernels {

// Of integers: they wrap around; x / 0 and x mod 0 are 0; div rounds towards zero, floor_div down, mod has
// the sign of the divisor.
enum class Binary { add, sub, mul, div, pow, maximum, minimum, floor_div, mod };

// What two tensors meet in; both have one dtype.
struct Pair {
  const void* a = nullptr;
  const void* b = nullptr;
  void* out = nullptr;
};

// Floating, int32, int64. `out` may be an operand of its size.
void binary(Binary kind, DType dtype, const BroadcastLoops& loops, const Pair& pair, int threads);
// The definition. Shapes of a, b and the result.
void binary_reference(Binary kind, DType dtype, const std::array<Shape, 3>& shapes, const Pair& pair);

// The result is bool. NaN equals nothing and is neither less nor greater.
enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal, logical_and, logical_or };

// Any dtype; for logical_and and logical_or everything but 0 is true.
void compare(Comparison kind, DType dtype, const BroadcastLoops& loops, const Pair& pair, int threads);
void compare_reference(Comparison kind, DType dtype, const std::array<Shape, 3>& shapes, const Pair& pair);

// out = condition ? a : b, of elements of `size_bytes` (1, 2, 4 or 8); loops of condition, a, b.
struct Choice {
  const bool* condition = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  void* out = nullptr;
};
void select(std::size_t size_bytes, const BroadcastLoops& loops, const Choice& choice, int threads);

}  // namespace muster::kernels
