// A simulated job that does not go on, and many that do.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator.h"

#include "tests/unit/base/mentions.h"

namespace muster::cluster::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Plan job_of(std::uint32_t worker_num, std::uint64_t seed) {
  Plan plan{.seed = seed, .worker_num = worker_num};
  for (std::uint32_t i = 0; i < worker_num; ++i)
    plan.nodes.push_back({.node_id = std::to_string(i), .fate_after = 150s});
  return plan;
}

TEST(StuckJob, IsToldEverywhereWithLongerAndLongerPausesAndThatItGoesOn) {
  Plan plan = job_of(4, 1);
  plan.nodes[2].hangs_after = 20s;
  plan.nodes[2].hangs_for = 60s;
  const RunResult result = Simulator(plan).run();
  for (const NodeResult& node : result.nodes) {
    ASSERT_EQ(node.told.size(), 4u) << "after 10, 20 and 40 s, and at the end";
    for (int i = 0; i < 3; ++i)
      EXPECT_THAT(node.told[i].second,
                  Mentions("rank 2", "loading", "step 2000", "0, 1, 3", "all_reduce 18"));
    EXPECT_THAT(node.told[3].second, HasSubstr("the job goes on"));
    const auto since = node.told[0].first - TimePoint{};
    EXPECT_GE(since, 30s);
    EXPECT_LT(since, 32s) << "a second after the limit at most, and the time to form";
    EXPECT_FALSE(node.failure);
  }
  EXPECT_FALSE(result.scheduler_failure);
}

TEST(StuckJob, IsNoneThatWaitsForLessThanTheLimit) {
  Plan plan = job_of(4, 2);
  plan.nodes[1].hangs_after = 20s;
  plan.nodes[1].hangs_for = 9s;
  for (const NodeResult& node : Simulator(plan).run().nodes) EXPECT_THAT(node.told, IsEmpty());
}

TEST(StuckJob, IsNeverSeenWhereStepsAreMadeHoweverBadTheNetwork) {
  int whole = 0;  // jobs that got through their two minutes and a half
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Plan plan = job_of(6, seed);
    plan.network = {.delay_max = 400ms, .drop = 0.05, .duplicate = 0.1, .reorders = true};
    const RunResult result = Simulator(plan).run();
    for (const NodeResult& node : result.nodes) EXPECT_THAT(node.told, IsEmpty());
    whole += result.scheduler_end - TimePoint{} > 140s;
  }
  EXPECT_GT(whole, 10);
}

}  // namespace
}  // namespace muster::cluster::sim
