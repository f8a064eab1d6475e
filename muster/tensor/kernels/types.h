// Private to kernels: from a DType to the C++ type of the elements.
#pragma once

#include <cstdint>

#include "muster/base/base.h"

namespace muster::kernels {

// Calls `use` with a value of the C++ type of `dtype`, which is one that has loops of its own: not float16,
// int16, uint16 or uint64, which others compute for.
template <class Use>
void with_type(DType dtype, Use&& use) {
  switch (dtype) {
    case DType::float32:
      return use(float{});
    case DType::float64:
      return use(double{});
    case DType::int32:
      return use(std::int32_t{});
    case DType::int64:
      return use(std::int64_t{});
    case DType::uint8:
      return use(std::uint8_t{});
    case DType::uint32:
      return use(std::uint32_t{});
    case DType::int8:
      return use(std::int8_t{});
    case DType::bool_:
      return use(bool{});
    case DType::bfloat16:
      return use(bfloat16{});
    case DType::float16:
    case DType::int16:
    case DType::uint16:
    case DType::uint64:
      break;
  }
  MUSTER_CHECK(false, "a kernel got a dtype that it has no loop for");
}

// The same for float32 and float64 only; nothing else may come here.
template <class Use>
void with_floating(DType dtype, Use&& use) {
  if (dtype == DType::float32) return use(float{});
  MUSTER_CHECK(dtype == DType::float64, "a kernel for floating numbers got others");
  use(double{});
}

// The same for what arithmetic takes: float32, float64, int32 and int64.
template <class Use>
void with_number(DType dtype, Use&& use) {
  if (dtype == DType::int32) return use(std::int32_t{});
  if (dtype == DType::int64) return use(std::int64_t{});
  with_floating(dtype, use);
}

// Both for loops that widen each element and round each result (elementwise_loops.h): bfloat16 too.
template <class Use>
void with_floating_element(DType dtype, Use&& use) {
  if (dtype == DType::bfloat16) return use(bfloat16{});
  with_floating(dtype, use);
}
template <class Use>
void with_number_element(DType dtype, Use&& use) {
  if (dtype == DType::bfloat16) return use(bfloat16{});
  with_number(dtype, use);
}

}  // namespace muster::kernels
