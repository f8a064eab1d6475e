#include "muster/data/look_up.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace muster::data {
namespace {

template <class Entry>
void look_up_plain(const Entry* table, const std::uint8_t* in, std::size_t count, Entry* out) {
#pragma GCC unroll 8  // else it takes twice as long where the loop happens to cross a line of the code
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
// did: all but a rest of less than 64. Streaming stores need an aligned `out`.
template <bool streaming>
[[gnu::target("avx512f,avx512bw,avx512vbmi")]] std::size_t look_up_vbmi(const std::uint32_t* table,
                                                                        const std::uint8_t* in,
                                                                        std::size_t count,
                                                                        std::uint32_t* out) {
  const Plane planes[4] = {plane_of(table, 0), plane_of(table, 1), plane_of(table, 2), plane_of(table, 3)};
  // Weaving works within each 128-bit lane: of register j of the result, lane k is woven from bytes 16 k + 4
  // j to 16 k + 4 j + 3. With the indices moved there beforehand, each register holds 16 elements in order.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  std::size_t done = 0;
  for (; done + block <= count; done += block) {
    const __m512i index = _mm512_permutexvar_epi32(order, _mm512_loadu_si512(in + done));
    const __m512i byte0 = pick(planes[0], index);
    const __m512i byte1 = pick(planes[1], index);
    const __m512i byte2 = pick(planes[2], index);
    const __m512i byte3 = pick(planes[3], index);
    const __m512i low01 = _mm512_unpacklo_epi8(byte0, byte1), high01 = _mm512_unpackhi_epi8(byte0, byte1);
    const __m512i low23 = _mm512_unpacklo_epi8(byte2, byte3), high23 = _mm512_unpackhi_epi8(byte2, byte3);
    const __m512i entries[4] = {_mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
                                _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
    for (std::size_t j = 0; j < 4; ++j) {
      auto* to = reinterpret_cast<__m512i*>(out + done + 16 * j);
      if constexpr (streaming)
        _mm512_stream_si512(to, entries[j]);
      else
        _mm512_storeu_si512(to, entries[j]);
    }
  }
  if constexpr (streaming) _mm_sfence();
  return done;
}

std::size_t look_up_fast(const std::uint32_t* table, const std::uint8_t* in, std::size_t count,
                         std::uint32_t* out, Stores stores) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(out) % block == 0;
  if (stores == Stores::streaming && aligned) return look_up_vbmi<true>(table, in, count, out);
  return look_up_vbmi<false>(table, in, count, out);
}

bool has_vbmi() {
  static const bool has = __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw");
  return has;
}

#else

std::size_t look_up_fast(const std::uint32_t*, const std::uint8_t*, std::size_t, std::uint32_t*, Stores) {
  return 0;
}
bool has_vbmi() { return false; }

#endif

}  // namespace

bool looks_up_many() { return has_vbmi(); }

void look_up(const std::uint8_t* table, const std::uint8_t* in, std::size_t count, std::uint8_t* out,
             Stores) {
  look_up_plain(table, in, count, out);
}

void look_up(const std::uint16_t* table, const std::uint8_t* in, std::size_t count, std::uint16_t* out,
             Stores) {
  look_up_plain(table, in, count, out);
}

void look_up(const std::uint32_t* table, const std::uint8_t* in, std::size_t count, std::uint32_t* out,
             Stores stores) {
  const std::size_t done = has_vbmi() ? look_up_fast(table, in, count, out, stores) : 0;
  look_up_plain(table, in + done, count - done, out + done);
}

void look_up(const std::uint64_t* table, const std::uint8_t* in, std::size_t count, std::uint64_t* out,
             Stores) {
  look_up_plain(table, in, count, out);
}

}  // namespace muster::data
