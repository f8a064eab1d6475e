#include "muster/cluster/process_stats.h"

#include <gmock/gmock.h>

namespace muster::cluster {
namespace {
namespace process_stats_test {

using namespace std::chrono_literals;
using ::testing::DoubleNear;
using ::testing::Eq;
using ::testing::Optional;

TEST(ProcessLoad, OfThisProcessIsKnown) {
  ProcessStats stats;
  read_process_load(stats);
  EXPECT_GT(stats.memory_bytes, 1u << 20);
  EXPECT_GT(stats.counters.cpu_us, 0u);
}

TEST(Pace, IsThatOfTheLastTenSeconds) {
  PaceMeter meter;
  EXPECT_THAT(meter.pace().step_seconds(), Eq(std::nullopt));
  for (std::uint64_t i = 0; i <= 200; ++i) {
    const bool is_fast = i > 100;  // a step takes 1 s, then 0.1 s
    const std::uint64_t step = is_fast ? 100 + 10 * (i - 100) : i;
    meter.add(TimePoint{} + i * 1s, step,
              {.samples = 32 * step, .cpu_us = i * 2'000'000, .waiting_us = i * 250'000});
  }
  const Pace pace = meter.pace();
  EXPECT_THAT(pace.step_seconds(), Optional(DoubleNear(0.1, 0.001)));
  EXPECT_THAT(pace.samples_per_second(), Optional(DoubleNear(320, 1)));
  EXPECT_THAT(pace.cores(), Optional(DoubleNear(2, 0.01)));
  EXPECT_NEAR(pace.share(pace.spent.waiting_us), 0.25, 0.001);
}

TEST(Pace, LooksAtTenStepsWhereTheseTakeLong) {
  PaceMeter meter;
  for (std::uint64_t i = 0; i <= 600; ++i) meter.add(TimePoint{} + i * 500ms, i / 40, {});
  EXPECT_THAT(meter.pace().step_seconds(), Optional(DoubleNear(20, 2)));
}

TEST(Pace, BeginsAnewWhereStepsGoBack) {
  PaceMeter meter;
  meter.add(TimePoint{} + 1s, 100, {});
  meter.add(TimePoint{} + 2s, 101, {});
  meter.add(TimePoint{} + 3s, 40, {});
  EXPECT_THAT(meter.pace().step_seconds(), Eq(std::nullopt));
}

}  // namespace process_stats_test
}  // namespace
}  // namespace muster::cluster
