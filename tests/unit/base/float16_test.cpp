#include "muster/base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace muster {
namespace {

TEST(Float16, GoesThroughFloatAndComesBackTheSame) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto number = float16::from_bits(static_cast<std::uint16_t>(bits));
    const float wide = number;
    if (std::isnan(wide))
      EXPECT_TRUE(std::isnan(static_cast<float>(float16(wide)))) << bits;
    else
      EXPECT_EQ(float16(wide).bits(), bits);
  }
}

TEST(Float16, HasTheNumbersOfIeee754) {
  EXPECT_EQ(static_cast<float>(float16::from_bits(0x0001)), 0x1p-24F);  // the smallest
  EXPECT_EQ(static_cast<float>(float16::from_bits(0x0400)), 0x1p-14F);  // the smallest with all its digits
  EXPECT_EQ(static_cast<float>(float16::from_bits(0x3C00)), 1.0F);
  EXPECT_EQ(static_cast<float>(float16::from_bits(0x7BFF)), 65504.0F);
  EXPECT_EQ(static_cast<float>(float16::from_bits(0xC000)), -2.0F);
}

TEST(Float16, IsTheNearestOfTwoNeighboursAndOfEqualOnesTheEven) {
  EXPECT_EQ(float16(1 + 0x1p-11F).bits(), 0x3C00);  // half way, below is even
  EXPECT_EQ(float16(1 + 0x1.002p-11F).bits(), 0x3C01);
  EXPECT_EQ(float16(1 + 0x3p-11F).bits(), 0x3C02);  // half way, above is even
  EXPECT_EQ(float16(0x1p-25F).bits(), 0x0000);      // half of the smallest
  EXPECT_EQ(float16(0x1.8p-25F).bits(), 0x0001);
  EXPECT_EQ(float16(0x3p-25F).bits(), 0x0002);
  EXPECT_EQ(float16(0x1.FFEp-15F).bits(), 0x0400);  // up to the next power of two
}

TEST(Float16, KeepsWhatIsNoNumberAndOverflowsToInfinity) {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(float16(infinite)), infinite);
  EXPECT_EQ(static_cast<float>(float16(-infinite)), -infinite);
  EXPECT_EQ(float16(65519.996F).bits(), 0x7BFF);
  EXPECT_EQ(static_cast<float>(float16(65520.0F)), infinite);
  EXPECT_TRUE(std::isnan(static_cast<float>(float16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(float16(-0.0F).bits(), 0x8000);
}

}  // namespace
}  // namespace muster
