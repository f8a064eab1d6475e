#include "muster/base/range.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster {
namespace {

TEST(Range, ContainsItsClosedBoundsAndNotItsOpenOnes) {
  const Range closed{.min = 0, .max = 2};
  EXPECT_TRUE(closed.contains(0) && closed.contains(2));
  EXPECT_FALSE(closed.contains(-0.5) || closed.contains(2.5));
  const Range open{.above = 0, .below = 1};
  EXPECT_TRUE(open.contains(0.5));
  EXPECT_FALSE(open.contains(0) || open.contains(1));
  const Range mixed{.max = 1, .above = 0};
  EXPECT_TRUE(mixed.contains(1));
  EXPECT_FALSE(mixed.contains(0) || mixed.contains(1.5));
}

TEST(Range, ContainsNoNaNWhereItIsBounded) {
  EXPECT_FALSE(Range{.min = 0}.contains(NAN));
  EXPECT_FALSE(Range{.below = 0}.contains(NAN));
  EXPECT_TRUE(Range{}.contains(NAN));
}

TEST(Range, NamesEveryBoundThatItHas) {
  EXPECT_EQ(to_string(Range{.min = 0}), "at least 0");
  EXPECT_EQ(to_string(Range{.max = 0.5}), "at most 0.5");
  EXPECT_EQ(to_string(Range{.above = 0}), "above 0");
  EXPECT_EQ(to_string(Range{.below = 1}), "below 1");
  EXPECT_EQ(to_string(Range{.min = 0, .max = 1}), "from 0 to 1");
  EXPECT_EQ(to_string(Range{.above = 0, .below = 1}), "in (0, 1)");
  EXPECT_EQ(to_string(Range{.max = 1, .above = 0}), "above 0 and at most 1");
  EXPECT_EQ(to_string(Range{.min = 0, .below = 1}), "at least 0 and below 1");
  EXPECT_EQ(to_string(Range{}), "");
}

}  // namespace
}  // namespace muster
