// Thousands of recovering jobs with random faults: what must hold whatever happens.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "promises.h"
#include "recovery_simulator.h"

#include "tests/unit/base/mentions.h"

namespace muster::cluster::sim {
namespace {
namespace recovery_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string history(const RecoveryPlan& plan, const RecoveryResult& result) {
  std::string text = fmt::format("{} workers{}\n", plan.worker_num, plan.are_named ? "" : ", not named");
  for (const Fault& fault : plan.faults)
    text += fmt::format("  {} ms: fault {} on node {} for {} ms\n", fault.when / 1ms,
                        static_cast<int>(fault.kind), fault.node, fault.lasts / 1ms);
  for (const ProcessResult& process : result.processes) {
    text += fmt::format("  process {} of node {}:", process.incarnation, process.node);
    for (const auto& [epoch, when] : process.epochs)
      text += fmt::format(" epoch {} at {} ms,", epoch, when.time_since_epoch() / 1ms);
    text += fmt::format("{}{}{}{}\n", process.killed ? " killed" : "", process.left_done ? " left done" : "",
                        process.ended ? " ended" : " runs on",
                        process.failure ? " by: " + process.failure->message : "");
  }
  return text;
}

// Of a job whose lost processes are always started again in time.
void expect_goes_on_to_the_end(const RecoveryResult& result) {
  EXPECT_THAT(broken_promises(result), IsEmpty());
  EXPECT_FALSE(result.failure) << result.failure->message;
  EXPECT_TRUE(result.ended_well);
}

RecoveryPlan plan_of(std::uint32_t worker_num, std::vector<Fault> faults) {
  return {.seed = 1, .worker_num = worker_num, .faults = std::move(faults)};
}

RecoveryPlan random_plan(std::uint64_t seed) {
  const RandomStream random(seed, hash_text("recovery plan"));
  std::uint64_t draw = 0;
  auto below = [&](std::uint64_t bound) { return random.below(draw++, bound); };
  RecoveryPlan plan{.seed = seed, .worker_num = static_cast<std::uint32_t>(1 + below(5))};
  plan.are_named = below(4) != 0;
  plan.delay_max = std::chrono::microseconds(1 + below(10000));
  for (std::uint32_t i = 0; i < plan.worker_num; ++i)
    plan.hosts.push_back(below(3) == 0 ? "host-b" : "host-a");
  const std::uint64_t faults = 1 + below(8);
  for (std::uint64_t i = 0; i < faults; ++i)
    plan.faults.push_back({.when = std::chrono::milliseconds(below(12000)),
                           .kind = static_cast<FaultKind>(below(fault_kind_count)),
                           .node = below(plan.worker_num),
                           .lasts = std::chrono::milliseconds(below(1500))});
  plan.node_timeout = 5s;
  // Without names, a duplicate is just one process too many.
  for (Fault& fault : plan.faults) {
    const bool is_duplicate =
        fault.kind == FaultKind::stops_with_duplicate || fault.kind == FaultKind::starts_a_duplicate;
    if (is_duplicate && !plan.are_named) fault.kind = FaultKind::kills;
    if (fault.kind == FaultKind::stops || fault.kind == FaultKind::stops_with_duplicate) fault.lasts *= 3;
  }
  return plan;
}

TEST(RecoverySimulation, TakesAProcessThatIsStartedAgainAtOnce) {
  for (const std::string host : {"host-a", "host-b"}) {
    RecoveryPlan plan = plan_of(4, {{.when = 2s, .kind = FaultKind::kills, .node = 2, .lasts = 50ms}});
    plan.hosts = {"host-a", "host-a", host, "host-a"};
    const RecoveryResult result = RecoverySimulator(plan).run();
    expect_goes_on_to_the_end(result);
    ASSERT_EQ(result.rosters.size(), 2u) << history(plan, result);
    // On a host of its own its death shows in the broken connection only, which might have been made again.
    EXPECT_LT(result.processes[4].epochs.front().second, TimePoint{} + 2s + 450ms) << host;
  }
}

TEST(RecoverySimulation, FencesAStoppedDuplicate) {
  const RecoveryPlan plan =
      plan_of(2, {{.when = 2s, .kind = FaultKind::stops_with_duplicate, .node = 1, .lasts = 8s}});
  const RecoveryResult result = RecoverySimulator(plan).run();
  expect_goes_on_to_the_end(result);
  ASSERT_EQ(result.processes.size(), 3u);
  for (const ProcessResult& old : result.processes) {
    if (old.node != 1 || old.left_done) continue;
    ASSERT_TRUE(old.failure) << history(plan, result);
    EXPECT_EQ(old.failure->exit_code, exit_code_refused);
    EXPECT_TRUE(old.ended);
  }
}

TEST(RecoverySimulation, RefusesTheDuplicateOfALiveProcessAndNobodyNotices) {
  const RecoveryPlan plan = plan_of(2, {{.when = 2s, .kind = FaultKind::starts_a_duplicate, .node = 1}});
  const RecoveryResult result = RecoverySimulator(plan).run();
  expect_goes_on_to_the_end(result);
  EXPECT_EQ(result.rosters.size(), 1u) << "no epoch was lost";
  ASSERT_TRUE(result.processes[2].failure);
  EXPECT_THAT(result.processes[2].failure->message, HasSubstr("taken by a live worker"));
}

// Who knows of a process what rosters say, and not its secret: while it lives, while its place is vacant,
// while the scheduler does not know yet, and when the process is done.
TEST(RecoverySimulation, TakesNobodyForAnotherAndNobodyNotices) {
  for (const Fault& other : {Fault{.when = 20s, .node = 1},  // none: behind the end
                             Fault{.when = 2s, .kind = FaultKind::kills, .node = 1, .lasts = 1s},
                             Fault{.when = 2s, .kind = FaultKind::stops, .node = 1, .lasts = 1s},
                             Fault{.when = 2s, .kind = FaultKind::kills_scheduler, .lasts = 500ms}}) {
    RecoveryPlan plan = plan_of(2, {other});
    plan.hosts = {"host-a", "host-b"};
    const RecoveryResult undisturbed = RecoverySimulator(plan).run();
    for (const Duration when : {1000ms, 2010ms, 2200ms, 2400ms, 2600ms, 2900ms, 3500ms, 5000ms, 5200ms})
      for (const std::size_t node : {std::size_t{0}, std::size_t{1}})
        plan.faults.push_back({.when = when, .kind = FaultKind::impersonates, .node = node});
    const RecoveryResult result = RecoverySimulator(plan).run();
    expect_goes_on_to_the_end(result);
    EXPECT_EQ(result.rosters.size(), undisturbed.rosters.size()) << history(plan, result);
    EXPECT_EQ(result.processes.size(), undisturbed.processes.size()) << history(plan, result);
  }
}

TEST(RecoverySimulation, TakesAProcessBackThatCountedAsDead) {
  for (const std::string host : {"host-a", "host-b"}) {
    RecoveryPlan plan = plan_of(2, {{.when = 2s, .kind = FaultKind::stops, .node = 1, .lasts = 4500ms}});
    plan.hosts = {"host-a", host};
    const RecoveryResult result = RecoverySimulator(plan).run();
    expect_goes_on_to_the_end(result);
    EXPECT_EQ(result.processes.size(), 2u);
    EXPECT_EQ(result.rosters.size(), 2u) << history(plan, result);
  }
}

TEST(RecoverySimulation, KeepsTheEpochWhenAConnectionOrTheSchedulerIsLost) {
  for (const FaultKind kind : {FaultKind::cuts_connection, FaultKind::kills_scheduler}) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      SCOPED_TRACE(fmt::format("fault {}, seed {}", static_cast<int>(kind), seed));
      RecoveryPlan plan = plan_of(3, {{.when = 1s, .kind = kind, .node = seed % 3, .lasts = 1s}});
      plan.faults.front().when += std::chrono::milliseconds(seed);
      plan.seed = seed;
      plan.hosts = {"host-a", "host-b", "host-c"};
      const RecoveryResult result = RecoverySimulator(plan).run();
      expect_goes_on_to_the_end(result);
      EXPECT_EQ(result.rosters.size(), 1u) << history(plan, result);
      if (HasFailure()) return;
    }
  }
}

// Cut off, one way or both, for less than it takes to count as dead: nothing is lost. For longer, it comes
// back like one that was stopped.
TEST(RecoverySimulation, TakesBackAHostThatWasCutOff) {
  for (const FaultKind kind :
       {FaultKind::cuts_off, FaultKind::cuts_off_to_scheduler, FaultKind::cuts_off_from_scheduler}) {
    for (const Duration lasts : {2s, 4s}) {
      SCOPED_TRACE(fmt::format("fault {}, {} s", static_cast<int>(kind), lasts / 1s));
      RecoveryPlan plan = plan_of(2, {{.when = 2s, .kind = kind, .node = 1, .lasts = lasts}});
      plan.hosts = {"host-a", "host-b"};
      const RecoveryResult result = RecoverySimulator(plan).run();
      expect_goes_on_to_the_end(result);
      EXPECT_EQ(result.processes.size(), 2u) << "nobody was started again";
      EXPECT_EQ(result.rosters.size(), lasts < 3s ? 1u : 2u) << history(plan, result);
    }
  }
}

TEST(RecoverySimulation, TrainsOnWithoutAPauseWhereOnlyTheSchedulersLogIsLost) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RecoveryPlan plan = plan_of(3, {{.when = 1s, .kind = FaultKind::loses_log, .lasts = 1s}});
    plan.faults.front().when += std::chrono::milliseconds(seed);
    plan.seed = seed;
    plan.hosts = {"host-a", "host-b", "host-c"};
    const RecoveryResult result = RecoverySimulator(plan).run();
    expect_goes_on_to_the_end(result);
    EXPECT_EQ(result.rosters.size(), 1u) << history(plan, result);
    if (HasFailure()) return;
  }
}

TEST(RecoverySimulation, GoesOnWithOneJobWhoeverDiesWithTheSchedulersLog) {
  for (const FaultKind kind : {FaultKind::loses_log_and_node, FaultKind::loses_log_and_everybody}) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      SCOPED_TRACE(fmt::format("fault {}, seed {}", static_cast<int>(kind), seed));
      RecoveryPlan plan = plan_of(3, {{.when = 1s, .kind = kind, .node = seed % 3, .lasts = 1s}});
      plan.faults.front().when += std::chrono::milliseconds(seed);
      plan.seed = seed;
      plan.are_named = seed % 2 == 0;
      plan.hosts = {"host-a", "host-b", "host-c"};
      const RecoveryResult result = RecoverySimulator(plan).run();
      expect_goes_on_to_the_end(result);
      EXPECT_EQ(result.jobs.size(), 1u) << history(plan, result);
      EXPECT_EQ(result.rosters.size(), 2u) << history(plan, result);
      EXPECT_GT(result.rosters.rbegin()->first, 1000u) << "as no other scheduler counts";
      if (HasFailure()) return;
    }
  }
}

// The scheduler that gave its place away, and the one that came there, are both gone without a trace but for
// the folder.
TEST(RecoverySimulation, FencesAStoppedDuplicateByItsFolderWhereTheLogIsLost) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RecoveryPlan plan =
        plan_of(1, {{.when = 300ms, .kind = FaultKind::loses_log, .lasts = 900ms},
                    {.when = 630ms, .kind = FaultKind::stops_with_duplicate, .lasts = 1350ms},
                    {.when = 1500ms, .kind = FaultKind::loses_log_and_everybody, .lasts = 900ms}});
    plan.seed = seed;
    plan.hosts = {"host-b"};
    const RecoveryResult result = RecoverySimulator(plan).run();
    expect_goes_on_to_the_end(result);
    ASSERT_TRUE(result.processes[0].failure) << history(plan, result);
    EXPECT_THAT(result.processes[0].failure->message, Mentions("newer", "folder"));
    EXPECT_TRUE(result.processes[0].ended);
    EXPECT_EQ(result.jobs.size(), 1u);
    if (HasFailure()) return;
  }
}

// It came first and waited, while another one had its place, kept points, and died.
TEST(RecoverySimulation, FindsWhatWasKeptWhileItWaited) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RecoveryPlan plan = plan_of(1, {{.when = 200ms, .kind = FaultKind::kills_everybody, .lasts = 50ms},
                                    {.when = 600ms, .kind = FaultKind::loses_log, .lasts = 1000ms},
                                    {.when = 700ms, .kind = FaultKind::starts_a_duplicate},
                                    {.when = 1500ms, .kind = FaultKind::loses_log_and_node, .lasts = 600ms}});
    plan.seed = seed;
    plan.training_time = 1500ms;
    plan.delay_max = 10ms;
    const RecoveryResult result = RecoverySimulator(plan).run();
    expect_goes_on_to_the_end(result);
    EXPECT_EQ(result.jobs.size(), 1u) << history(plan, result);
    if (HasFailure()) return;
  }
}

TEST(RecoverySimulation, TakesNoWordOfAnEarlierEpoch) {
  RecoveryPlan plan = plan_of(3, {{.when = 1s, .kind = FaultKind::kills, .node = 0, .lasts = 50ms}});
  for (std::size_t i = 0; i < 3; ++i)
    plan.faults.push_back({.when = 3s + i * 100ms, .kind = FaultKind::replays, .node = i});
  const RecoveryResult result = RecoverySimulator(plan).run();
  expect_goes_on_to_the_end(result);
  EXPECT_EQ(result.rosters.size(), 2u) << history(plan, result);
  EXPECT_GT(result.replayed, 20u);
}

TEST(RecoverySimulation, GoesOnWithTenThousandNodesWhenTwentyDie) {
  RecoveryPlan plan = plan_of(10'000, {});
  for (std::size_t i = 0; i < plan.worker_num; ++i) plan.hosts.push_back(fmt::format("host-{}", i / 8));
  for (std::size_t i = 0; i < 20; ++i)
    plan.faults.push_back(
        {.when = 600ms + i * 5ms, .kind = FaultKind::kills, .node = i * 497, .lasts = 100ms});
  plan.training_time = 700ms;
  const RecoveryResult result = RecoverySimulator(plan).run();
  expect_goes_on_to_the_end(result);
  EXPECT_EQ(result.processes.size(), 10'020u);
  EXPECT_LE(result.rosters.size(), 4u);
}

TEST(RecoverySimulation, EndsForAllWhenNobodyComesBackInTime) {
  const RecoveryPlan plan = plan_of(3, {{.when = 2s, .kind = FaultKind::kills, .node = 1, .lasts = 100s}});
  const RecoveryResult result = RecoverySimulator(plan).run();
  EXPECT_THAT(result.broken, IsEmpty());
  ASSERT_TRUE(result.failure);
  EXPECT_THAT(result.failure->message,
              AllOf(HasSubstr("MS_NODE_TIMEOUT"), Mentions("epoch 2", "node 1", "crashed"),
                    HasSubstr("MS_NODE_ID=1")));
  EXPECT_LT(result.end, TimePoint{} + 2s + 3s + 300ms);
  for (const std::size_t i : {0, 2}) EXPECT_EQ(result.processes[i].failure, result.failure);
}

TEST(RecoverySimulation, GoesOnToTheEndWhateverDiesStopsOrBreaks) {
  std::uint64_t epochs = 0;
  for (std::uint64_t seed = 0; seed < 10000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const RecoveryPlan plan = random_plan(seed);
    const RecoveryResult result = RecoverySimulator(plan).run();
    expect_goes_on_to_the_end(result);
    if (!result.rosters.empty()) epochs += result.rosters.rbegin()->first;
    if (HasFailure()) {
      fmt::print("{}", history(plan, result));
      return;
    }
  }
  fmt::print("10000 seeds: {} epochs\n", epochs);
  EXPECT_GT(epochs, 20000u);
}

}  // namespace recovery_test
}  // namespace
}  // namespace muster::cluster::sim
