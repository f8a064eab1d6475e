#include "muster/server/drawn_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "muster/tensor/tensor.h"

namespace muster::server {
namespace {

// So many pairs at once: their numbers are one vector of AVX-512. Compilers make shorter ones of it where
// there is none.
constexpr std::size_t lanes = 8;
using Words = std::uint64_t __attribute__((vector_size(lanes * sizeof(std::uint64_t))));
using Reals = double __attribute__((vector_size(lanes * sizeof(double))));
using Floats = float __attribute__((vector_size(lanes * sizeof(float))));

// What is inlined everywhere has the instructions of the function that it is inlined in.
#define MUSTER_INLINE inline __attribute__((always_inline))

MUSTER_INLINE Words same(std::uint64_t word) { return Words{} + word; }
MUSTER_INLINE Reals same(double real) { return Reals{} + real; }

// As RandomStream's `unit`: 53 bits of 64. Through the bits of doubles: AVX2 converts no integers of 64 bits.
MUSTER_INLINE Reals units_of(const Words& bits) {
  constexpr std::uint64_t low_one = 0x4330000000000000, high_one = 0x4530000000000000;  // 2^52, 2^84
  const Words whole = bits >> 11;
  const Reals high = (Reals)(whole >> 32 | high_one);
  const Reals low = (Reals)((whole & 0xFFFFFFFF) | low_one);
  return ((high - (0x1p84 + 0x1p52)) + low) * 0x1p-53;
}

struct Pairs {
  Reals first;
  Reals second;
};

// What is to be drawn, as the loops below get it.
struct Wanted {
  DrawnFrom from;
  double scale = 0;
  double mean = 0;
  bool is_normal = false;
};

// What both numbers of each pair are drawn from, as philox() gives it.
MUSTER_INLINE Pairs draw_units(const DrawnFrom& from, std::uint64_t pair) {
  constexpr std::uint64_t low = 0xFFFFFFFF;
  const Words pairs = Words{0, 1, 2, 3, 4, 5, 6, 7} + pair;
  Words c0 = pairs & low, c1 = pairs >> 32, c2 = same(from.stream & low), c3 = same(from.stream >> 32);
  std::uint64_t key0 = from.seed & low, key1 = from.seed >> 32;
  for (int round = 0; round < 10; ++round) {
    const Words product0 = c0 * 0xD2511F53, product1 = c2 * 0xCD9E8D57;
    c0 = product1 >> 32 ^ c1 ^ key0;
    c1 = product1 & low;
    c2 = product0 >> 32 ^ c3 ^ key1;
    c3 = product0 & low;
    key0 = (key0 + 0x9E3779B9) & low;
    key1 = (key1 + 0xBB67AE85) & low;
  }
  return {units_of(c0 | c1 << 32), units_of(c2 | c3 << 32)};
}

// The polynomial of these coefficients, that of the highest power first.
template <std::size_t count>
MUSTER_INLINE Reals polynomial(const Reals& x, const double (&coefficients)[count]) {
  Reals sum = same(coefficients[0]);
  for (std::size_t i = 1; i < count; ++i) sum = sum * x + coefficients[i];
  return sum;
}

// Of x in (0, 1]: the exponent's part, and that of a number m near 1 by 2 atanh((m - 1) / (m + 1)).
MUSTER_INLINE Reals log_of(const Reals& x) {
  constexpr std::uint64_t root_half = 0x3FE6A09E667F3BCD, one = 0x3FF0000000000000;
  const Words above = (Words)x - root_half + one;  // the exponent, counted from sqrt(1/2)
  const Reals exponent =
      (Reals)(above >> 52 | 0x4330000000000000) - (0x1p52 + 1023);  // an integer by its bits
  const Reals m = (Reals)((above & 0x000FFFFFFFFFFFFF) + root_half);
  const Reals s = (m - 1.0) / (m + 1.0);
  constexpr double of_atanh[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                                 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  return exponent * std::numbers::ln2 + s * 2.0 * polynomial(s * s, of_atanh);
}

// Sine and cosine of 2 pi x, for x in [0, 1): Taylor's polynomials of the angle to the next quarter.
MUSTER_INLINE Pairs turn(const Reals& x) {
  constexpr double of_sine[] = {-1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880,
                                -1.0 / 5040,          1.0 / 120,        -1.0 / 6,        1.0};
  constexpr double of_cosine[] = {1.0 / 20922789888000,
                                  -1.0 / 87178291200,
                                  1.0 / 479001600,
                                  -1.0 / 3628800,
                                  1.0 / 40320,
                                  -1.0 / 720,
                                  1.0 / 24,
                                  -1.0 / 2,
                                  1.0};
  const Reals shifted = x * 4.0 + 0x1.8p52;  // the nearest integer stands in its last bits
  const Words quarter = (Words)shifted;
  const Reals angle = (x - (shifted - 0x1.8p52) * 0.25) * (2 * std::numbers::pi);
  const Reals square = angle * angle;
  const Reals sine = polynomial(square, of_sine) * angle, cosine = polynomial(square, of_cosine);
  const Words is_odd = -(quarter & 1), other = (Words)sine ^ (Words)cosine;
  const Words for_sine = (Words)sine ^ (other & is_odd), for_cosine = (Words)cosine ^ (other & is_odd);
  return {(Reals)(for_sine ^ (quarter & 2) << 62), (Reals)(for_cosine ^ ((quarter + 1) & 2) << 62)};
}

// GCC has no vector's square root but by an instruction set's own name.
MUSTER_INLINE Reals root_of(const Reals& x) {
  Reals root;
  for (std::size_t i = 0; i < lanes; ++i) root[i] = std::sqrt(x[i]);
  return root;
}

// Numbers of 2 * lanes neighbours: the even ones, and the odd ones.
struct Neighbours {
  Floats even;
  Floats odd;
};
MUSTER_INLINE Floats rounded_to_float(const Reals& x) { return __builtin_convertvector(x, Floats); }

// mean + scale * normal, rounded to float. Returns whether all are certain to be those of RandomStream; else
// `uncertain` says which ones are not: what is a hundred times what this and RandomStream can differ by,
// which is some units of a double's last place, to either side rounds to another float. (0 may have the other
// sign.)
MUSTER_INLINE bool draw_normals(const Wanted& wanted, std::uint64_t pair, Neighbours& drawn,
                                std::array<bool, 2 * lanes>& uncertain) {
  const auto [first, second] = draw_units(wanted.from, pair);
  const Reals radius = root_of(log_of(1.0 - first) * -2.0) * wanted.scale;
  const auto [sine, cosine] = turn(second);
  const Reals size = (Reals)((Words)radius & ~(std::uint64_t{1} << 63));
  const Reals either = size * 0x1p-42 + std::abs(wanted.mean) * 0x1p-48;
  const Reals even = radius * cosine + wanted.mean, odd = radius * sine + wanted.mean;
  drawn = {rounded_to_float(even), rounded_to_float(odd)};
  const auto even_is =
      (rounded_to_float(even - either) != rounded_to_float(even + either)) | (drawn.even == 0);
  const auto odd_is = (rounded_to_float(odd - either) != rounded_to_float(odd + either)) | (drawn.odd == 0);
  const auto any = even_is | odd_is;
  int all = 0;
  for (std::size_t i = 0; i < lanes; ++i) all |= any[i];
  if (all == 0) return true;
  for (std::size_t i = 0; i < lanes; ++i) {
    uncertain[2 * i] = even_is[i] != 0;
    uncertain[2 * i + 1] = odd_is[i] != 0;
  }
  return false;
}

MUSTER_INLINE Neighbours draw_uniforms(const Wanted& wanted, std::uint64_t pair) {
  const auto [first, second] = draw_units(wanted.from, pair);
  return {rounded_to_float((first * 2.0 - 1.0) * wanted.scale),
          rounded_to_float((second * 2.0 - 1.0) * wanted.scale)};
}

MUSTER_INLINE void draw(const Wanted& wanted, std::span<float> values) {
  std::array<bool, 2 * lanes> uncertain = {};
  for (std::size_t done = 0; done < values.size();) {
    const std::uint64_t index = wanted.from.index + done;
    Neighbours drawn;
    bool all_are_certain = true;
    if (wanted.is_normal)
      all_are_certain = draw_normals(wanted, index / 2, drawn, uncertain);
    else
      drawn = draw_uniforms(wanted, index / 2);
    std::array<float, 2 * lanes> in_order;
    for (std::size_t i = 0; i < lanes; ++i) {
      in_order[2 * i] = drawn.even[i];
      in_order[2 * i + 1] = drawn.odd[i];
    }
    const std::size_t skipped = index % 2, count = std::min(2 * lanes - skipped, values.size() - done);
    std::copy_n(in_order.data() + skipped, count, values.data() + done);
    for (std::size_t i = 0; !all_are_certain && i < count; ++i)
      if (uncertain[skipped + i])
        values[done + i] = static_cast<float>(
            wanted.mean +
            wanted.scale * RandomStream(wanted.from.seed, wanted.from.stream).normal(index + i));
    done += count;
  }
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))) void draw_avx512(
    const Wanted& wanted, std::span<float> values) {
  draw(wanted, values);
}
__attribute__((target("avx2,fma"))) void draw_avx2(const Wanted& wanted, std::span<float> values) {
  draw(wanted, values);
}
#endif

void draw_here(const Wanted& wanted, std::span<float> values) {
#if defined(__x86_64__)
  if (processor_isa() == Isa::avx512) return draw_avx512(wanted, values);
  if (processor_isa() == Isa::avx2) return draw_avx2(wanted, values);
#endif
  draw(wanted, values);
}

}  // namespace

void draw_normal(const DrawnFrom& from, double scale, double mean, std::span<float> values) {
  draw_here({.from = from, .scale = scale, .mean = mean, .is_normal = true}, values);
}

void draw_uniform(const DrawnFrom& from, double scale, std::span<float> values) {
  draw_here({.from = from, .scale = scale}, values);
}

}  // namespace muster::server
