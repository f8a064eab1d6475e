// Private: code for the element type of a tensor.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "muster/base/base.h"
#include "muster/tensor/tensor.h"

namespace muster::data {

// Calls `use` with a null pointer to the C++ type of `dtype`.
template <class Use>
void with_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::float32:
      return use(static_cast<float*>(nullptr));
    case DType::float64:
      return use(static_cast<double*>(nullptr));
    case DType::int32:
      return use(static_cast<std::int32_t*>(nullptr));
    case DType::int64:
      return use(static_cast<std::int64_t*>(nullptr));
    case DType::uint8:
      return use(static_cast<std::uint8_t*>(nullptr));
    case DType::uint32:
      return use(static_cast<std::uint32_t*>(nullptr));
    case DType::int8:
      return use(static_cast<std::int8_t*>(nullptr));
    case DType::bool_:
      return use(static_cast<bool*>(nullptr));
    case DType::bfloat16:
      return use(static_cast<bfloat16*>(nullptr));
    case DType::float16:
      return use(static_cast<float16*>(nullptr));
    case DType::int16:
      return use(static_cast<std::int16_t*>(nullptr));
    case DType::uint16:
      return use(static_cast<std::uint16_t*>(nullptr));
    case DType::uint64:
      return use(static_cast<std::uint64_t*>(nullptr));
  }
}

// As C++ converts, but for what C++ leaves undefined: a float beyond an integer type's range becomes the
// nearest bound, and one that is no number becomes 0.
template <class To, class Given>
To convert(Given given) {
  using From = Computed<Given>;
  const From value = given;
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    if (std::isnan(value)) return 0;
    // 2^digits is the first value too large, and exact in every float type, which the largest To need not be.
    const From beyond = std::ldexp(From{1}, std::numeric_limits<To>::digits);
    if (value >= beyond) return std::numeric_limits<To>::max();
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  }
  return static_cast<To>(static_cast<Computed<To>>(value));
}

template <class To>
void convert_all(DType from, std::size_t elements, const std::byte* in, To* out) {
  cast_elements(in, from, reinterpret_cast<std::byte*>(out), dtype_of<To>, elements);
}

}  // namespace muster::data
