// A floating-point number of 16 bits: IEEE 754's binary16, with 11 bits of precision and a range up to 65504.
#pragma once

#include <bit>
#include <cstdint>

namespace muster {

// For storing; arithmetic happens in float. Numbers are rounded to the nearest, halves to the even one; what
// is beyond the range becomes infinite, and NaN stays NaN.
class float16 {
 public:
  float16() = default;
  constexpr explicit float16(float value) : bits_(rounded(value)) {}
  static constexpr float16 from_bits(std::uint16_t bits) {
    float16 made;
    made.bits_ = bits;
    return made;
  }

  constexpr operator float() const { return widened(bits_); }  // NOLINT: implicit by design, it is exact
  constexpr std::uint16_t bits() const { return bits_; }

 private:
  static constexpr int dropped_bits = 13;                      // of a float's mantissa
  static constexpr std::uint32_t bias_apart = 112U << 23;      // between the exponents of both
  static constexpr std::uint32_t infinity = 0x7F800000;        // as a float, like those below
  static constexpr std::uint32_t least_infinite = 0x477FF000;  // 65520
  static constexpr std::uint32_t least_normal = 0x38800000;    // 2^-14

  // Without branches, so that loops over it become vector instructions.
  static constexpr std::uint16_t rounded(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits & 0x80000000;
    const std::uint32_t size = bits ^ sign;
    const std::uint32_t normal = (size - bias_apart + 0xFFF + ((size >> dropped_bits) & 1)) >> dropped_bits;
    // Added to 1/2, whose last bit is the last one of a number below 2^-14: the sum is rounded as wanted.
    const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3F000000;
    const std::uint32_t quiet_nan = 0x7E00 | ((size >> dropped_bits) & 0x3FF);
    const std::uint32_t finite = size < least_normal ? small : normal;
    const std::uint32_t number = size >= least_infinite ? 0x7C00 : finite;
    return static_cast<std::uint16_t>((size > infinity ? quiet_nan : number) | (sign >> 16));
  }

  static constexpr float widened(std::uint16_t given) {
    const std::uint32_t sign = static_cast<std::uint32_t>(given & 0x8000) << 16;
    const std::uint32_t size = static_cast<std::uint32_t>(given & 0x7FFF) << dropped_bits;
    const std::uint32_t normal = size + bias_apart;
    // With an exponent of its own, which is then taken away.
    const float small = std::bit_cast<float>(size + least_normal) - std::bit_cast<float>(least_normal);
    const bool is_small = size < (1U << 23);
    const bool is_finite = size < (31U << 23);
    const std::uint32_t number = is_small ? std::bit_cast<std::uint32_t>(small) : normal;
    return std::bit_cast<float>((is_finite ? number : size | infinity) | sign);
  }

  std::uint16_t bits_ = 0;
};
static_assert(sizeof(float16) == 2);

}  // namespace muster
