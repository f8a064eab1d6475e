#include "muster/collective/kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muster::collective {
namespace {

constexpr std::size_t block_size_bytes = 4096;  // of the accumulator: stays in the first-level cache

// Integers wrap around, which only unsigned arithmetic does without undefined behaviour; 16 bits times 16
// bits would be signed.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < sizeof(unsigned)), unsigned, std::make_unsigned_t<T>>;

template <class T>
inline T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  else
    return a + b;
}

template <class T>
inline T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  else
    return a * b;
}

// The comparisons are such that a NaN on either side gives NaN.
template <class T, Reduction reduction>
[[gnu::always_inline]] inline T step(T a, T b) {
  if constexpr (reduction == Reduction::max) return a > b || a != a ? a : b;
  if constexpr (reduction == Reduction::min) return a < b || a != a ? a : b;
  if constexpr (reduction == Reduction::product) return multiply(a, b);
  if constexpr (std::is_integral_v<T>) {
    if constexpr (reduction == Reduction::band) return static_cast<T>(a & b);
    if constexpr (reduction == Reduction::bor) return static_cast<T>(a | b);
    if constexpr (reduction == Reduction::bxor) return static_cast<T>(a ^ b);
  }
  return add(a, b);
}

// T: what is combined in, of elements E.
template <class T, Reduction reduction, class E>
[[gnu::always_inline]] inline void fold_plain(T* into, const T* a, const E* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) into[i] = step<T, reduction>(a[i], static_cast<T>(b[i]));
}

template <class T, class E>
using Fold = void (*)(T* into, const T* a, const E* b, std::size_t count);
template <class From, class To>
using Cast = void (*)(To* to, const From* from, std::size_t count);

template <class T, Reduction reduction, class E>
void fold_any(T* into, const T* a, const E* b, std::size_t count) {
  fold_plain<T, reduction>(into, a, b, count);
}
template <class From, class To>
[[gnu::always_inline]] inline void cast_plain(To* to, const From* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]);
}
template <class From, class To>
void cast_any(To* to, const From* from, std::size_t count) {
  cast_plain(to, from, count);
}

#if defined(__x86_64__)
// The same loops, compiled for wider registers; the processor decides which one runs.
template <class T, Reduction reduction, class E>
[[gnu::target("avx2")]] void fold_avx2(T* into, const T* a, const E* b, std::size_t count) {
  fold_plain<T, reduction>(into, a, b, count);
}
template <class T, Reduction reduction, class E>
[[gnu::target("avx512f,avx512bw,avx512dq,prefer-vector-width=512")]] void fold_avx512(T* into, const T* a,
                                                                                      const E* b,
                                                                                      std::size_t count) {
  fold_plain<T, reduction>(into, a, b, count);
}
template <class From, class To>
[[gnu::target("avx2")]] void cast_avx2(To* to, const From* from, std::size_t count) {
  cast_plain(to, from, count);
}
template <class From, class To>
[[gnu::target("avx512f,avx512bw,avx512dq,prefer-vector-width=512")]] void cast_avx512(To* to,
                                                                                      const From* from,
                                                                                      std::size_t count) {
  cast_plain(to, from, count);
}
#endif

enum class Registers { plain, avx2, avx512 };
Registers widest_registers() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return Registers::avx512;
  if (__builtin_cpu_supports("avx2")) return Registers::avx2;
#endif
  return Registers::plain;
}

template <class T, Reduction reduction, class E>
Fold<T, E> choose_fold() {
#if defined(__x86_64__)
  if (widest_registers() == Registers::avx512) return &fold_avx512<T, reduction, E>;
  if (widest_registers() == Registers::avx2) return &fold_avx2<T, reduction, E>;
#endif
  return &fold_any<T, reduction, E>;
}

template <class From, class To>
Cast<From, To> choose_cast() {
#if defined(__x86_64__)
  if (widest_registers() == Registers::avx512) return &cast_avx512<From, To>;
  if (widest_registers() == Registers::avx2) return &cast_avx2<From, To>;
#endif
  return &cast_any<From, To>;
}

// From elements to what they are combined in, and back.
template <class From, class To>
void cast_block(To* to, const From* from, std::size_t count) {
  if constexpr (std::is_same_v<From, To>) {
    if (to != from) std::memcpy(to, from, count * sizeof(From));
  } else {
    static const Cast<From, To> cast = choose_cast<From, To>();
    cast(to, from, count);
  }
}

// The number of ranks, which need not be one of the elements' numbers.
template <class T>
using Divisor = std::conditional_t<!std::is_integral_v<T>, T,
                                   std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

template <class E, Reduction reduction>
void combine_typed(const Combination& work) {
  using T = Computed<E>;
  constexpr Reduction folded = reduction == Reduction::mean ? Reduction::sum : reduction;
  static const Fold<T, E> fold = choose_fold<T, folded, E>();
  alignas(line_size_bytes) T block[block_size_bytes / sizeof(T)];
  alignas(line_size_bytes) E rounded[std::is_same_v<T, E> ? 1 : std::size(block)];
  for (std::size_t begin = 0; begin < work.count; begin += std::size(block)) {
    const std::size_t count = std::min(std::size(block), work.count - begin);
    const auto source = [&](std::size_t r) { return reinterpret_cast<const E*>(work.sources[r]) + begin; };
    if constexpr (std::is_same_v<T, E>) {
      if (work.sources.size() == 1)
        cast_block(block, source(0), count);
      else
        fold(block, source(0), source(1), count);
      for (std::size_t r = 2; r < work.sources.size(); ++r) fold(block, block, source(r), count);
    } else {
      cast_block(block, source(0), count);
      for (std::size_t r = 1; r < work.sources.size(); ++r) fold(block, block, source(r), count);
    }
    if constexpr (reduction == Reduction::mean)
      for (std::size_t i = 0; i < count; ++i)
        block[i] = static_cast<T>(block[i] / static_cast<Divisor<T>>(work.sources.size()));
    const auto* bytes = reinterpret_cast<const std::byte*>(block);
    if constexpr (!std::is_same_v<T, E>) {
      cast_block(rounded, block, count);
      bytes = reinterpret_cast<const std::byte*>(rounded);
    }
    for (const Destination& to : work.destinations)
      copy(to.bytes + begin * sizeof(E), bytes, count * sizeof(E), to.stores);
  }
}

template <class E>
void combine_reduction(const Combination& work) {
  switch (work.reduction) {
    case Reduction::sum:
      return combine_typed<E, Reduction::sum>(work);
    case Reduction::mean:
      return combine_typed<E, Reduction::mean>(work);
    case Reduction::max:
      return combine_typed<E, Reduction::max>(work);
    case Reduction::min:
      return combine_typed<E, Reduction::min>(work);
    case Reduction::product:
      return combine_typed<E, Reduction::product>(work);
    default:
      break;
  }
  if constexpr (std::is_integral_v<E>) switch (work.reduction) {
      case Reduction::band:
        return combine_typed<E, Reduction::band>(work);
      case Reduction::bor:
        return combine_typed<E, Reduction::bor>(work);
      case Reduction::bxor:
        return combine_typed<E, Reduction::bxor>(work);
      default:
        break;
    }
  MUSTER_CHECK(false, "no such reduction of this dtype");
}

// Bytes of which each is 0 or 1.
void combine_bools(Combination work) {
  switch (work.reduction) {
    case Reduction::sum:
    case Reduction::max:
      work.reduction = Reduction::bor;
      break;
    case Reduction::product:
    case Reduction::min:
      work.reduction = Reduction::band;
      break;
    default:
      break;
  }
  combine_reduction<std::uint8_t>(work);
}

#if defined(__x86_64__)
[[gnu::target("avx512f")]] void stream_lines_avx512(std::byte* to, const std::byte* from, std::size_t lines) {
  for (; lines > 0; --lines, to += line_size_bytes, from += line_size_bytes)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
}
void stream_lines_sse2(std::byte* to, const std::byte* from, std::size_t lines) {
  for (; lines > 0; --lines, to += line_size_bytes, from += line_size_bytes)
    for (std::size_t i = 0; i < line_size_bytes; i += sizeof(__m128i))
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
}
#endif

}  // namespace

void copy(std::byte* to, const std::byte* from, std::size_t size_bytes, Stores stores) {
#if defined(__x86_64__)
  if (stores == Stores::streaming && size_bytes >= 4 * line_size_bytes) {
    static const auto stream_lines =
        __builtin_cpu_supports("avx512f") ? &stream_lines_avx512 : &stream_lines_sse2;
    const std::size_t head = -reinterpret_cast<std::uintptr_t>(to) % line_size_bytes;
    const std::size_t lines = (size_bytes - head) / line_size_bytes;
    const std::size_t tail = head + lines * line_size_bytes;
    std::memcpy(to, from, head);
    stream_lines(to + head, from + head, lines);
    std::memcpy(to + tail, from + tail, size_bytes - tail);
    _mm_sfence();  // streaming stores are not ordered before the flags that announce them
    return;
  }
#endif
  static_cast<void>(stores);
  if (size_bytes > 0) std::memmove(to, from, size_bytes);
}

void combine(const Combination& work) {
  switch (work.dtype) {
    case DType::float32:
      return combine_reduction<float>(work);
    case DType::float64:
      return combine_reduction<double>(work);
    case DType::float16:
      return combine_reduction<float16>(work);
    case DType::bfloat16:
      return combine_reduction<bfloat16>(work);
    case DType::int8:
      return combine_reduction<std::int8_t>(work);
    case DType::int16:
      return combine_reduction<std::int16_t>(work);
    case DType::int32:
      return combine_reduction<std::int32_t>(work);
    case DType::int64:
      return combine_reduction<std::int64_t>(work);
    case DType::uint8:
      return combine_reduction<std::uint8_t>(work);
    case DType::uint16:
      return combine_reduction<std::uint16_t>(work);
    case DType::uint32:
      return combine_reduction<std::uint32_t>(work);
    case DType::uint64:
      return combine_reduction<std::uint64_t>(work);
    case DType::bool_:
      return combine_bools(work);
  }
}

}  // namespace muster::collective
