#include "muster/tensor/kernels/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "muster/tensor/kernels/types.h"

namespace muster::kernels {
namespace {

template <class From, class To>
To convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value)) return 0;
    const auto low = static_cast<From>(std::numeric_limits<To>::min());
    const auto high = static_cast<From>(std::numeric_limits<To>::max());
    if (value <= low) return std::numeric_limits<To>::min();
    if (value >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

template <class T>
void bias_add(const T* x, const T* bias, T* out, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) out[r * columns + c] = x[r * columns + c] + bias[c];
}

template <class T>
void fill(T value, T* out, std::int64_t count) {
  std::fill_n(out, count, value);
}

void cast(const void* x, DType from, void* out, DType to, std::int64_t count) {
  with_type(from, [&](auto from_value) {
    with_type(to, [&](auto to_value) {
      using From = decltype(from_value);
      using To = decltype(to_value);
      const auto* source = static_cast<const From*>(x);
      auto* target = static_cast<To*>(out);
      for (std::int64_t i = 0; i < count; ++i) target[i] = convert<From, To>(source[i]);
    });
  });
}

#define MUSTER_INSTANTIATE_ANY(T) template void fill(T, T*, std::int64_t);
MUSTER_INSTANTIATE_ANY(float)
MUSTER_INSTANTIATE_ANY(double)
MUSTER_INSTANTIATE_ANY(std::int32_t)
MUSTER_INSTANTIATE_ANY(std::int64_t)
MUSTER_INSTANTIATE_ANY(std::uint8_t)
MUSTER_INSTANTIATE_ANY(std::uint32_t)
MUSTER_INSTANTIATE_ANY(std::int8_t)
MUSTER_INSTANTIATE_ANY(bool)

template void bias_add(const float*, const float*, float*, std::int64_t, std::int64_t);
template void bias_add(const double*, const double*, double*, std::int64_t, std::int64_t);

}  // namespace muster::kernels
