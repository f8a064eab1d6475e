#include "muster/tensor/kernels/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "muster/tensor/kernels/bfloat16_loops.h"
#include "muster/tensor/kernels/elementwise_loops.h"
#include "muster/tensor/kernels/types.h"

namespace muster::kernels {
namespace {

template <class From, class To>
To convert(From given) {
  const Computed<From> value = given;
  if constexpr (std::is_same_v<To, bool>) {
    return value != Computed<From>{0};
  } else if constexpr (is_floating_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value)) return 0;
    const auto low = static_cast<Computed<From>>(std::numeric_limits<To>::min());
    const auto high = static_cast<Computed<From>>(std::numeric_limits<To>::max());
    if (value <= low) return std::numeric_limits<To>::min();
    if (value >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(static_cast<Computed<To>>(value));
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

void cast(const void* x, DType from, void* out, DType to, std::int64_t count, int threads) {
  if (from == DType::float32 && to == DType::bfloat16)
    return in_parts(bfloat16_loops().round, count, threads, static_cast<bfloat16*>(out),
                    static_cast<const float*>(x));
  if (from == DType::bfloat16 && to == DType::float32)
    return in_parts(bfloat16_loops().widen, count, threads, static_cast<float*>(out),
                    static_cast<const bfloat16*>(x));
  with_type(from, [&](auto from_value) {
    with_type(to, [&](auto to_value) {
      using From = decltype(from_value);
      using To = decltype(to_value);
      const auto* source = static_cast<const From*>(x);
      auto* target = static_cast<To*>(out);
      parallel_for(count, elementwise_grain, threads, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) target[i] = convert<From, To>(source[i]);
      });
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
MUSTER_INSTANTIATE_ANY(bfloat16)

template void bias_add(const float*, const float*, float*, std::int64_t, std::int64_t);
template void bias_add(const double*, const double*, double*, std::int64_t, std::int64_t);

}  // namespace muster::kernels
