#include "muster/tensor/kernels/elementwise.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "muster/tensor/kernels/bfloat16_loops.h"
#include "muster/tensor/kernels/elementwise_loops.h"
#include "muster/tensor/kernels/types.h"

namespace muster::kernels {
namespace {

// Towards zero. What an Int cannot hold, and NaN, becomes its least number: as x86 converts, and so numpy
// and MindSpore there.
template <class Int, class From>
Int truncated(From value) {
  constexpr auto least = std::numeric_limits<Int>::min();
  constexpr auto beyond = -static_cast<From>(least);
  return value >= -beyond && value < beyond ? static_cast<Int>(value) : least;
}

// Whole numbers narrower than int32, and uint32, take the low bits.
template <class From, class To>
To convert(From given) {
  const Computed<From> value = given;
  if constexpr (std::is_same_v<To, bool>) {
    return value != Computed<From>{0};
  } else if constexpr (is_floating_v<From> && std::is_integral_v<To>) {
    using Int =
        std::conditional_t<sizeof(To) == 8 || std::is_same_v<To, std::uint32_t>, std::int64_t, std::int32_t>;
    return static_cast<To>(truncated<Int>(value));
  } else {
    return static_cast<To>(static_cast<Computed<To>>(value));
  }
}

template <class From, class To>
void convert_all(const void* x, void* out, std::int64_t count) {
  const auto* source = static_cast<const From*>(x);
  auto* target = static_cast<To*>(out);
  for (std::int64_t i = 0; i < count; ++i) target[i] = convert<From, To>(source[i]);
}

// Between dtypes that have loops of their own.
void cast_typed(const void* x, DType from, void* out, DType to, std::int64_t count) {
  with_type(from, [&](auto from_zero) {
    with_type(to, [&](auto to_zero) { convert_all<decltype(from_zero), decltype(to_zero)>(x, out, count); });
  });
}

// float16, int16, uint16 and uint64: numbers are kept in them, and nothing computes in them. Loops for every
// pair would be many.
constexpr DTypes kept_only{DType::float16, DType::int16, DType::uint16, DType::uint64};

// Of uint64 and floating numbers, since int64 holds but half of it. As x86 converts, with NaN 2^63.
template <class T>
void from_uint64(const void* x, void* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    static_cast<T*>(out)[i] = static_cast<T>(static_cast<const std::uint64_t*>(x)[i]);
}
template <class T>
void to_uint64(const void* x, void* out, std::int64_t count) {
  constexpr T half = 0x1p63;
  for (std::int64_t i = 0; i < count; ++i) {
    const T value = static_cast<const T*>(x)[i];
    const bool is_upper = value >= half;
    const auto low = static_cast<std::uint64_t>(truncated<std::int64_t>(is_upper ? value - half : value));
    static_cast<std::uint64_t*>(out)[i] = is_upper ? low ^ (std::uint64_t{1} << 63) : low;
  }
}

// Into the dtype that computes for a kept one.
void widen(const void* x, DType from, void* out, std::int64_t count) {
  if (from == DType::float16)
    bfloat16_loops().widen_float16(static_cast<const float16*>(x), static_cast<float*>(out), count);
  if (from == DType::int16) convert_all<std::int16_t, std::int32_t>(x, out, count);
  if (from == DType::uint16) convert_all<std::uint16_t, std::int32_t>(x, out, count);
  if (from == DType::uint64) std::memcpy(out, x, static_cast<std::size_t>(count) * sizeof(std::uint64_t));
}

// And back.
void narrow(const void* x, void* out, DType to, std::int64_t count) {
  if (to == DType::float16)
    bfloat16_loops().round_float16(static_cast<const float*>(x), static_cast<float16*>(out), count);
  if (to == DType::int16 || to == DType::uint16) convert_all<std::int32_t, std::uint16_t>(x, out, count);
  if (to == DType::uint64) std::memcpy(out, x, static_cast<std::size_t>(count) * sizeof(std::uint64_t));
}

// A block of a cast from or to a kept dtype.
void cast_block(const void* x, DType from, void* out, DType to, std::int64_t count, std::byte* wide_from,
                std::byte* wide_to) {
  if (from == DType::uint64 && to == DType::float32) return from_uint64<float>(x, out, count);
  if (from == DType::uint64 && to == DType::float64) return from_uint64<double>(x, out, count);
  if (from == DType::float32 && to == DType::uint64) return to_uint64<float>(x, out, count);
  if (from == DType::float64 && to == DType::uint64) return to_uint64<double>(x, out, count);
  if (kept_only.contains(from)) {
    const DType wide = from == DType::uint64 && is_floating(to) ? DType::float32 : computed_in(from);
    if (wide == DType::float32 && from == DType::uint64)
      from_uint64<float>(x, wide_from, count);
    else
      widen(x, from, wide_from, count);
    x = wide_from;
    from = wide;
  }
  if (!kept_only.contains(to)) {
    if (from != to) return cast_typed(x, from, out, to, count);
    std::memcpy(out, x, static_cast<std::size_t>(count) * size_bytes(to));
    return;
  }
  const DType wide = to == DType::uint64 && is_floating(from) ? DType::float32 : computed_in(to);
  if (from != wide) cast_typed(x, from, wide_to, wide, count);
  const void* const last = from == wide ? x : wide_to;
  if (to == DType::uint64 && wide == DType::float32) return to_uint64<float>(last, out, count);
  narrow(last, out, to, count);
}

// In blocks that stay in the first-level cache.
void cast_in_blocks(const void* x, DType from, void* out, DType to, std::int64_t count) {
  constexpr std::int64_t block = 1024;
  alignas(64) std::byte wide_from[block * 8];
  alignas(64) std::byte wide_to[block * 8];
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const auto at = [begin](DType dtype) { return begin * static_cast<std::int64_t>(size_bytes(dtype)); };
    cast_block(static_cast<const std::byte*>(x) + at(from), from, static_cast<std::byte*>(out) + at(to), to,
               std::min(block, count - begin), wide_from, wide_to);
  }
}

}  // namespace

template <class T>
void bias_add(const T* x, const T* bias, T* out, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) out[r * columns + c] = x[r * columns + c] + bias[c];
}

void cast(const void* x, DType from, void* out, DType to, std::int64_t count, int threads) {
  if (from == DType::float32 && to == DType::bfloat16)
    return in_parts(bfloat16_loops().round, count, threads, static_cast<bfloat16*>(out),
                    static_cast<const float*>(x));
  if (from == DType::bfloat16 && to == DType::float32)
    return in_parts(bfloat16_loops().widen, count, threads, static_cast<float*>(out),
                    static_cast<const bfloat16*>(x));
  if (from == DType::float32 && to == DType::float16)
    return in_parts(bfloat16_loops().round_float16, count, threads, static_cast<float16*>(out),
                    static_cast<const float*>(x));
  if (from == DType::float16 && to == DType::float32)
    return in_parts(bfloat16_loops().widen_float16, count, threads, static_cast<float*>(out),
                    static_cast<const float16*>(x));
  const bool is_typed = !kept_only.contains(from) && !kept_only.contains(to);
  parallel_for(count, elementwise_grain, threads, [=](std::int64_t begin, std::int64_t end) {
    const auto at = [begin](DType dtype) { return begin * static_cast<std::int64_t>(size_bytes(dtype)); };
    (is_typed ? cast_typed : cast_in_blocks)(static_cast<const std::byte*>(x) + at(from), from,
                                             static_cast<std::byte*>(out) + at(to), to, end - begin);
  });
}

template void bias_add(const float*, const float*, float*, std::int64_t, std::int64_t);
template void bias_add(const double*, const double*, double*, std::int64_t, std::int64_t);

}  // namespace muster::kernels
