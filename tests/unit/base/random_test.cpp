#include "muster/base/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster {
namespace {

// Known answers published with Random123 for philox4x32-10.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(RandomStream, DiffersBySeedStreamAndIndexAndRepeats) {
  const RandomStream stream(1, 2);
  EXPECT_EQ(stream.bits(7), RandomStream(1, 2).bits(7));
  EXPECT_NE(stream.bits(7), RandomStream(1, 3).bits(7));
  EXPECT_NE(stream.bits(7), RandomStream(2, 2).bits(7));
  EXPECT_NE(stream.bits(6), stream.bits(7));
}

TEST(RandomStream, HasTheMeanAndSpreadOfItsDistributions) {
  const RandomStream stream(42, 0);
  const int count = 100000;
  double uniform_sum = 0, normal_sum = 0, normal_squares = 0;
  for (int i = 0; i < count; ++i) {
    const double uniform = stream.uniform(i), normal = stream.normal(i);
    ASSERT_GE(uniform, 0.0);
    ASSERT_LT(uniform, 1.0);
    uniform_sum += uniform;
    normal_sum += normal;
    normal_squares += normal * normal;
  }
  EXPECT_NEAR(uniform_sum / count, 0.5, 0.01);
  EXPECT_NEAR(normal_sum / count, 0.0, 0.02);
  EXPECT_NEAR(normal_squares / count, 1.0, 0.02);
}

TEST(RandomStream, BelowReachesEveryValueAndNothingElse) {
  const RandomStream stream(5, 5);
  std::array<int, 7> seen{};
  for (int i = 0; i < 7000; ++i) ++seen.at(stream.below(i, 7));
  for (const int count : seen) EXPECT_GT(count, 800);
}

}  // namespace
}  // namespace muster
