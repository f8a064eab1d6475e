// A floating-point number of 16 bits: the upper half of a float, with its range and 8 bits of precision.
#pragma once

#include <bit>
#include <cstdint>

namespace muster {

// For storing; arithmetic happens in float. Numbers are rounded to the nearest, halves to the even one, and
// NaN stays NaN.
class bfloat16 {
 public:
  bfloat16() = default;
  constexpr explicit bfloat16(float value) : bits_(rounded(value)) {}
  static constexpr bfloat16 from_bits(std::uint16_t bits) {
    bfloat16 made;
    made.bits_ = bits;
    return made;
  }

  constexpr operator float() const {  // NOLINT: implicit by design, it is exact
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16);
  }
  constexpr std::uint16_t bits() const { return bits_; }

 private:
  // Without branches, so that loops over it become vector instructions.
  static constexpr std::uint16_t rounded(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t to_nearest = bits + 0x7FFF + ((bits >> 16) & 1);
    const std::uint32_t quiet_nan = bits | 0x400000;
    const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
    return static_cast<std::uint16_t>((is_nan ? quiet_nan : to_nearest) >> 16);
  }

  std::uint16_t bits_ = 0;
};
static_assert(sizeof(bfloat16) == 2);

}  // namespace muster
