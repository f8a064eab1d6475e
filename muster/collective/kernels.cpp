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

// Integers wrap around, which only unsigned arithmetic does without undefined behaviour.
template <class T>
inline T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

// The comparisons are such that a NaN on either side gives NaN.
template <class T, Reduction reduction>
[[gnu::always_inline]] inline T step(T a, T b) {
  if constexpr (reduction == Reduction::max) return a > b || a != a ? a : b;
  if constexpr (reduction == Reduction::min) return a < b || a != a ? a : b;
  return add(a, b);
}

template <class T, Reduction reduction>
[[gnu::always_inline]] inline void fold_plain(T* into, const T* a, const T* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) into[i] = step<T, reduction>(a[i], b[i]);
}

template <class T>
using Fold = void (*)(T* into, const T* a, const T* b, std::size_t count);

template <class T, Reduction reduction>
void fold_any(T* into, const T* a, const T* b, std::size_t count) {
  fold_plain<T, reduction>(into, a, b, count);
}

#if defined(__x86_64__)
// The same loop, compiled for wider registers; the processor decides which one runs.
template <class T, Reduction reduction>
[[gnu::target("avx2")]] void fold_avx2(T* into, const T* a, const T* b, std::size_t count) {
  fold_plain<T, reduction>(into, a, b, count);
}
template <class T, Reduction reduction>
[[gnu::target("avx512f,avx512dq,prefer-vector-width=512")]] void fold_avx512(T* into, const T* a, const T* b,
                                                                             std::size_t count) {
  fold_plain<T, reduction>(into, a, b, count);
}
#endif

template <class T, Reduction reduction>
Fold<T> choose_fold() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
    return &fold_avx512<T, reduction>;
  if (__builtin_cpu_supports("avx2")) return &fold_avx2<T, reduction>;
#endif
  return &fold_any<T, reduction>;
}

template <class T, Reduction reduction>
void combine_typed(const Combination& work) {
  static const Fold<T> fold = choose_fold < T, reduction == Reduction::mean ? Reduction::sum : reduction > ();
  alignas(line_size_bytes) T block[block_size_bytes / sizeof(T)];
  for (std::size_t begin = 0; begin < work.count; begin += std::size(block)) {
    const std::size_t count = std::min(std::size(block), work.count - begin);
    const auto source = [&](std::size_t r) { return reinterpret_cast<const T*>(work.sources[r]) + begin; };
    if (work.sources.size() == 1)
      std::memcpy(block, source(0), count * sizeof(T));
    else
      fold(block, source(0), source(1), count);
    for (std::size_t r = 2; r < work.sources.size(); ++r) fold(block, block, source(r), count);
    if constexpr (reduction == Reduction::mean)
      for (std::size_t i = 0; i < count; ++i) block[i] /= static_cast<T>(work.sources.size());
    const auto* bytes = reinterpret_cast<const std::byte*>(block);
    for (const Destination& to : work.destinations)
      copy(to.bytes + begin * sizeof(T), bytes, count * sizeof(T), to.stores);
  }
}

template <class T>
void combine_reduction(const Combination& work) {
  switch (work.reduction) {
    case Reduction::sum:
      return combine_typed<T, Reduction::sum>(work);
    case Reduction::mean:
      return combine_typed<T, Reduction::mean>(work);
    case Reduction::max:
      return combine_typed<T, Reduction::max>(work);
    case Reduction::min:
      return combine_typed<T, Reduction::min>(work);
  }
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

bool can_combine(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float64 || dtype == DType::int32 || dtype == DType::int64;
}

void combine(const Combination& work) {
  switch (work.dtype) {
    case DType::float32:
      return combine_reduction<float>(work);
    case DType::float64:
      return combine_reduction<double>(work);
    case DType::int32:
      return combine_reduction<std::int32_t>(work);
    case DType::int64:
      return combine_reduction<std::int64_t>(work);
    default:
      MUSTER_CHECK(false, "no reduction for this dtype");
  }
}

}  // namespace muster::collective
