#include "muster/launch/measure.h"

#include <gtest/gtest.h>

namespace muster::launch {
namespace {

using namespace std::chrono_literals;

TEST(Measure, FindsRoundTripBandwidthAndClockOfWhoAnswers) {
  net::Loop loop;  // of both sides
  const auto listener = cluster::EchoListener::open(loop, real_clock(), "127.0.0.1", nullptr);
  ASSERT_TRUE(listener) << listener.error().message;
  const auto visit = cluster::Visit::open(loop, real_clock(), (*listener)->address(), {.limit = 10s});
  ASSERT_TRUE(visit) << visit.error().message;
  const auto way = measure(**visit, real_clock());
  ASSERT_TRUE(way) << way.error().message;
  EXPECT_GT(way->round_trip, 0s);
  EXPECT_LE(way->round_trip, way->slowest);
  EXPECT_GT(way->bits_per_second, 1e3);
  EXPECT_LT(std::chrono::abs(way->clock_ahead), 1s) << "it is the same clock";
  EXPECT_NE((*listener)->last_served(), TimePoint{});
}

TEST(Measure, EndsWithAnErrorWhenTheOtherSideHasEnough) {
  net::Loop loop;
  const auto listener = cluster::EchoListener::open(loop, real_clock(), "127.0.0.1", nullptr);
  ASSERT_TRUE(listener) << listener.error().message;
  const auto visit = cluster::Visit::open(loop, real_clock(), (*listener)->address(), {.limit = 10s});
  ASSERT_TRUE(visit) << visit.error().message;
  ASSERT_TRUE(measure(**visit, real_clock()));
  EXPECT_FALSE(measure(**visit, real_clock())) << "more than four megabytes on one connection";
}

}  // namespace
}  // namespace muster::launch
