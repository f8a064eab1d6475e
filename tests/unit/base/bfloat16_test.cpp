#include "muster/base/bfloat16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace muster {
namespace {

float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

TEST(Bfloat16, GoesThroughFloatAndComesBackTheSame) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto number = bfloat16::from_bits(static_cast<std::uint16_t>(bits));
    const float wide = number;
    if (std::isnan(wide))
      EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(wide)))) << bits;
    else
      EXPECT_EQ(bfloat16(wide).bits(), bits);
  }
}

TEST(Bfloat16, IsTheNearestOfTwoNeighboursAndOfEqualOnesTheEven) {
  EXPECT_EQ(bfloat16(float_of(0x3F800001)).bits(), 0x3F80);  // just above 1
  EXPECT_EQ(bfloat16(float_of(0x3F807FFF)).bits(), 0x3F80);
  EXPECT_EQ(bfloat16(float_of(0x3F808000)).bits(), 0x3F80);  // half way, below is even
  EXPECT_EQ(bfloat16(float_of(0x3F808001)).bits(), 0x3F81);
  EXPECT_EQ(bfloat16(float_of(0x3F818000)).bits(), 0x3F82);  // half way, above is even
  EXPECT_EQ(bfloat16(float_of(0xBF818000)).bits(), 0xBF82);
}

TEST(Bfloat16, KeepsWhatIsNoNumberAndOverflowsToInfinity) {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(bfloat16(infinite)), infinite);
  EXPECT_EQ(static_cast<float>(bfloat16(-infinite)), -infinite);
  EXPECT_EQ(static_cast<float>(bfloat16(std::numeric_limits<float>::max())), infinite);
  EXPECT_TRUE(
      std::isnan(static_cast<float>(bfloat16(float_of(0x7F800001)))));  // its upper half alone is infinity
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(float_of(0x7FFFFFFF)))));
  EXPECT_EQ(bfloat16(-0.0F).bits(), 0x8000);
}

}  // namespace
}  // namespace muster
