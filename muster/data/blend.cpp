#include "muster/data/blend.h"

#include "muster/tensor/tensor.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muster::data {
namespace {

[[gnu::always_inline]] inline void blend_line_body(const LineBlend& blend, std::size_t count,
                                                   std::int16_t* __restrict out) {
  const std::int32_t* __restrict line = blend.old_line;
  for (std::size_t j = 0; j < count; ++j) {
    const std::int32_t a = line[blend.first[j]], b = line[blend.second[j]];
    // 8 bits and 11 of the weight, cut to 8 and 7: what int16 holds, and where OpenCV rounds.
    out[j] = static_cast<std::int16_t>((a * blend_line_one + (b - a) * blend.weights[j]) >> 4);
  }
}

[[gnu::always_inline]] inline void blend_rows_body(const std::int16_t* __restrict above,
                                                   const std::int16_t* __restrict below, std::int32_t weight,
                                                   std::size_t begin, std::size_t count,
                                                   std::uint8_t* __restrict out) {
  for (std::size_t j = begin; j < count; ++j) {
    const std::int32_t a = (above[j] * (blend_rows_one - weight)) >> 16, b = (below[j] * weight) >> 16;
    out[j] = static_cast<std::uint8_t>((a + b + 2) >> 2);
  }
}

#if defined(__x86_64__)

[[gnu::target("avx2")]] void blend_line_avx2(const LineBlend& blend, std::size_t count, std::int16_t* out) {
  blend_line_body(blend, count, out);
}

[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")]] void blend_line_avx512(
    const LineBlend& blend, std::size_t count, std::int16_t* out) {
  blend_line_body(blend, count, out);
}

[[gnu::target("avx2")]] void blend_rows_avx2(const std::int16_t* above, const std::int16_t* below,
                                             std::int32_t weight, std::size_t count, std::uint8_t* out) {
  const __m256i w = _mm256_set1_epi16(static_cast<std::int16_t>(weight));
  const __m256i rest = _mm256_set1_epi16(static_cast<std::int16_t>(blend_rows_one - weight));
  const __m256i half = _mm256_set1_epi16(2);
  std::size_t j = 0;
  for (; j + 16 <= count; j += 16) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(above + j));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(below + j));
    const __m256i sum = _mm256_add_epi16(_mm256_mulhi_epi16(a, rest), _mm256_mulhi_epi16(b, w));
    const __m256i value = _mm256_srai_epi16(_mm256_add_epi16(sum, half), 2);
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(value), _mm256_extracti128_si256(value, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + j), bytes);
  }
  blend_rows_body(above, below, weight, j, count, out);
}

[[gnu::target("avx512f,avx512bw")]] void blend_rows_avx512(const std::int16_t* above,
                                                           const std::int16_t* below, std::int32_t weight,
                                                           std::size_t count, std::uint8_t* out) {
  const __m512i w = _mm512_set1_epi16(static_cast<std::int16_t>(weight));
  const __m512i rest = _mm512_set1_epi16(static_cast<std::int16_t>(blend_rows_one - weight));
  const __m512i half = _mm512_set1_epi16(2);
  std::size_t j = 0;
  for (; j + 32 <= count; j += 32) {
    const __m512i a = _mm512_loadu_si512(above + j);
    const __m512i b = _mm512_loadu_si512(below + j);
    const __m512i sum = _mm512_add_epi16(_mm512_mulhi_epi16(a, rest), _mm512_mulhi_epi16(b, w));
    const __m512i value = _mm512_srai_epi16(_mm512_add_epi16(sum, half), 2);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + j), _mm512_cvtepi16_epi8(value));
  }
  blend_rows_body(above, below, weight, j, count, out);
}

#endif

}  // namespace

void blend_line(const LineBlend& blend, std::size_t count, std::int16_t* out) {
#if defined(__x86_64__)
  const Isa isa = processor_isa();
  if (isa == Isa::avx512) return blend_line_avx512(blend, count, out);
  if (isa == Isa::avx2) return blend_line_avx2(blend, count, out);
#endif
  blend_line_body(blend, count, out);
}

void blend_rows(const std::int16_t* above, const std::int16_t* below, std::int32_t weight, std::size_t count,
                std::uint8_t* out) {
#if defined(__x86_64__)
  const Isa isa = processor_isa();
  if (isa == Isa::avx512) return blend_rows_avx512(above, below, weight, count, out);
  if (isa == Isa::avx2) return blend_rows_avx2(above, below, weight, count, out);
#endif
  blend_rows_body(above, below, weight, 0, count, out);
}

}  // namespace muster::data
