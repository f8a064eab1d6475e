#include "muster/data/look_up.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace muster::data {
namespace {

template <class Entry>
void look_up_plain(const Entry* table, const std::uint8_t* in, std::size_t count, Entry* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = table[in[i]];
}

#ifdef __x86_64__

constexpr std::size_t block = 64;  // bytes in a register

// One byte of each entry: 256 bytes in four registers.
struct Plane {
  __m512i quarters[4];
};

[[gnu::target("avx512f,avx512bw,avx512vbmi")]] inline Plane plane_of(const std::uint32_t* table, int byte) {
  alignas(block) std::uint8_t bytes[4 * block];
  for (std::size_t i = 0; i < 4 * block; ++i) bytes[i] = static_cast<std::uint8_t>(table[i] >> (8 * byte));
  Plane plane;
  for (std::size_t i = 0; i < 4; ++i) plane.quarters[i] = _mm512_load_si512(bytes + i * block);
  return plane;
}

[[gnu::target("avx512f,avx512bw,avx512vbmi")]] inline __m512i pick(const Plane& plane, __m512i index) {
  // The permutation of two registers takes 7 bits of an index; the eighth chooses the half of the table.
  const __m512i low = _mm512_permutex2var_epi8(plane.quarters[0], index, plane.quarters[1]);
  const __m512i high = _mm512_permutex2var_epi8(plane.quarters[2], index, plane.quarters[3]);
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
}

// Looks up each of the four bytes of an entry apart, then weaves them together. Returns how many elements it
// did: all but a rest of less than 64.
[[gnu::target("avx512f,avx512bw,avx512vbmi")]] std::size_t look_up_vbmi(const std::uint32_t* table,
                                                                        const std::uint8_t* in,
                                                                        std::size_t count,
                                                                        std::uint32_t* out) {
  const Plane planes[4] = {plane_of(table, 0), plane_of(table, 1), plane_of(table, 2), plane_of(table, 3)};
  std::size_t done = 0;
  for (; done + block <= count; done += block) {
    const __m512i index = _mm512_loadu_si512(in + done);
    const __m512i byte0 = pick(planes[0], index);
    const __m512i byte1 = pick(planes[1], index);
    const __m512i byte2 = pick(planes[2], index);
    const __m512i byte3 = pick(planes[3], index);
    // Weaving works within each 128-bit lane: lane k of `entries[j]` holds elements 16 k + 4 j to 16 k + 4 j
    // + 3.
    const __m512i low01 = _mm512_unpacklo_epi8(byte0, byte1), high01 = _mm512_unpackhi_epi8(byte0, byte1);
    const __m512i low23 = _mm512_unpacklo_epi8(byte2, byte3), high23 = _mm512_unpackhi_epi8(byte2, byte3);
    const __m512i entries[4] = {_mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
                                _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
    for (std::size_t j = 0; j < 4; ++j) {
      auto* to = reinterpret_cast<__m128i*>(out + done + 4 * j);
      _mm_storeu_si128(to, _mm512_extracti32x4_epi32(entries[j], 0));
      _mm_storeu_si128(to + 4, _mm512_extracti32x4_epi32(entries[j], 1));
      _mm_storeu_si128(to + 8, _mm512_extracti32x4_epi32(entries[j], 2));
      _mm_storeu_si128(to + 12, _mm512_extracti32x4_epi32(entries[j], 3));
    }
  }
  return done;
}

bool has_vbmi() {
  static const bool has = __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw");
  return has;
}

#else

std::size_t look_up_vbmi(const std::uint32_t*, const std::uint8_t*, std::size_t, std::uint32_t*) { return 0; }
bool has_vbmi() { return false; }

#endif

}  // namespace

void look_up(const std::uint8_t* table, const std::uint8_t* in, std::size_t count, std::uint8_t* out) {
  look_up_plain(table, in, count, out);
}

void look_up(const std::uint32_t* table, const std::uint8_t* in, std::size_t count, std::uint32_t* out) {
  const std::size_t done = has_vbmi() ? look_up_vbmi(table, in, count, out) : 0;
  look_up_plain(table, in + done, count - done, out + done);
}

void look_up(const std::uint64_t* table, const std::uint8_t* in, std::size_t count, std::uint64_t* out) {
  look_up_plain(table, in, count, out);
}

}  // namespace muster::data
