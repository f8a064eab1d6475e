#include "tests/sim/server/schedules.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::server::sim {
namespace {

using ::testing::IsEmpty;

// A million of them: ./dev sim --only servers
TEST(ServerSchedules, LoseNoPushAndApplyNoneTwiceWhateverGoesWrong) {
  constexpr std::uint64_t count = 4000;
  std::uint64_t generations = 0, bases = 0, resets = 0, sent_again = 0, changes = 0, gave_up = 0;
  std::uint64_t fetched = 0, told_lost = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const RunResult result = run_schedule(seed);
    ASSERT_THAT(result.broken, IsEmpty()) << "seed " << seed << '\n'
                                          << fmt::format("{}", fmt::join(explain(seed), "\n"));
    generations += result.generations;
    bases += result.bases;
    resets += result.resets;
    sent_again += result.sent_again;
    changes += result.changes;
    gave_up += result.gave_up;
    fetched += result.fetched;
    told_lost += result.told_lost;
  }
  fmt::print(
      "{} schedules: {} generations, {} bases, {} times back to one, {} pushes came again, {} pulls were "
      "answered early, {} pushes were nowhere, {} times rows came from another server, {} times both had "
      "lost them\n",
      count, generations, bases, resets, sent_again, changes, gave_up, fetched, told_lost);
  // Each way to go on was gone.
  EXPECT_GT(generations, count * 3 / 2);
  EXPECT_GT(bases, count / 4);
  EXPECT_GT(resets, count / 20);
  EXPECT_GT(sent_again, count / 20);
  EXPECT_GT(changes, count / 4);
  EXPECT_GT(gave_up, count / 100);
  EXPECT_GT(fetched, count / 20);
  EXPECT_GT(told_lost, 0U);
}

}  // namespace
}  // namespace muster::server::sim
