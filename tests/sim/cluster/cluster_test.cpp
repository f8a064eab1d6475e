#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "promises.h"
#include "simulator.h"

#include "tests/unit/base/mentions.h"

namespace muster::cluster::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// --- what must hold whatever happens -----------------------------------------------------------------------

void expect_invariants(const Plan& plan, const RunResult& result) {
  EXPECT_THAT(broken_promises(plan, result), IsEmpty());
}

// With a network that loses nothing, every node repeats the scheduler's reason.
void expect_one_reason(const RunResult& result) {
  ASSERT_TRUE(result.scheduler_failure);
  for (const NodeResult& node : result.nodes) {
    if (node.crashed || node.stopped || node.left_done || !node.failure) continue;
    if (node.failure->code == Code::refused) continue;
    EXPECT_EQ(*node.failure, *result.scheduler_failure);
  }
}

Plan plan_of(std::uint64_t seed, std::uint32_t worker_num) {
  Plan plan{.seed = seed, .worker_num = worker_num};
  for (std::uint32_t i = 0; i < worker_num; ++i) plan.nodes.push_back({.node_id = std::to_string(i)});
  return plan;
}

// A small cluster whose size, ids, order and times are drawn.
Plan random_plan(std::uint64_t seed) {
  RandomStream random(seed, hash_text("plan"));
  std::uint64_t draw = 0;
  auto below = [&](std::uint64_t bound) { return random.below(draw++, bound); };
  auto milliseconds_below = [&](std::uint64_t bound) { return std::chrono::milliseconds(below(bound)); };
  Plan plan{.seed = seed, .worker_num = static_cast<std::uint32_t>(1 + below(6))};
  plan.server_num = static_cast<std::uint32_t>(below(3));
  plan.scheduler_start = milliseconds_below(3000);
  plan.network.delay_max = std::chrono::microseconds(1 + below(20000));
  for (std::uint32_t i = 0; i < plan.worker_num + plan.server_num; ++i) {
    NodePlan node{.role = i < plan.worker_num ? Role::worker : Role::server};
    node.node_id =
        below(2) == 0 ? std::to_string(below(1000) < 500 ? i : 100 + i) : fmt::format("name-{}", i);
    node.start = milliseconds_below(3000);
    node.fate_after = milliseconds_below(2000);
    node.host = below(3) == 0 ? "host-b" : "host-a";
    plan.nodes.push_back(node);
  }
  return plan;
}

// --- the tests ---------------------------------------------------------------------------------------------

TEST(ClusterSimulation, EndsWellWhenAllWorkersLeaveDone) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Plan plan = random_plan(seed);
    const RunResult result = Simulator(plan).run();
    expect_invariants(plan, result);
    ASSERT_TRUE(result.scheduler_ended);
    EXPECT_FALSE(result.scheduler_failure) << result.scheduler_failure->message;
    for (const NodeResult& node : result.nodes) EXPECT_FALSE(node.failure) << node.failure->message;
    if (HasFailure()) return;
  }
}

TEST(ClusterSimulation, TellsEveryoneOfAnyDeathWithinASecond) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Plan plan = random_plan(seed);
    const std::size_t victim = seed % plan.worker_num;
    for (NodePlan& node : plan.nodes) node.fate_after = 10s;
    plan.nodes[victim].fate = seed % 2 == 0 ? Fate::crashes : Fate::crashes_but_child_holds_sockets;
    // On a host where nobody else is, a child that holds the sockets is found by the missing heartbeat only.
    plan.nodes[victim].host = "host-a";
    plan.nodes[victim].fate_after = std::chrono::milliseconds(20 + seed % 1000);
    const RunResult result = Simulator(plan).run();
    expect_invariants(plan, result);
    expect_one_reason(result);
    ASSERT_TRUE(result.scheduler_failure);
    const NodeResult& dead = result.nodes[victim];
    EXPECT_THAT(result.scheduler_failure->message,
                AllOf(HasSubstr(fmt::format("worker {} (node '{}'", dead.rank, plan.nodes[victim].node_id)),
                      HasSubstr("is gone"), HasSubstr("step")));
    EXPECT_EQ(result.scheduler_failure->code, Code::peer_lost);
    EXPECT_LT(result.scheduler_end - dead.fault, 1200ms);
    for (const NodeResult& node : result.nodes) EXPECT_LT(node.end - dead.fault, 1200ms);
    if (HasFailure()) return;
  }
}

TEST(ClusterSimulation, TellsOfADeadWorkerWhoseChildHoldsItsSocketsOnAnotherHostThanTheScheduler) {
  Plan plan = plan_of(1, 3);
  for (NodePlan& node : plan.nodes) {
    node.host = "host-b";
    node.fate_after = 10s;
  }
  plan.nodes[1].fate = Fate::crashes_but_child_holds_sockets;
  plan.nodes[1].fate_after = 400ms;
  const RunResult result = Simulator(plan).run();
  expect_invariants(plan, result);
  ASSERT_TRUE(result.scheduler_failure);
  EXPECT_THAT(result.scheduler_failure->message,
              AllOf(HasSubstr("worker 1"), HasSubstr("killed or crashed")));
  EXPECT_LT(result.scheduler_end - result.nodes[1].fault, 1200ms);
}

TEST(ClusterSimulation, TellsOfAStoppedNodeAfterTheNodeTimeout) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Plan plan = random_plan(seed);
    for (NodePlan& node : plan.nodes) node.fate_after = 20s;
    const std::size_t victim = seed % plan.nodes.size();
    plan.nodes[victim].fate = Fate::is_stopped;
    plan.nodes[victim].fate_after = std::chrono::milliseconds(20 + seed % 1000);
    const RunResult result = Simulator(plan).run();
    expect_invariants(plan, result);
    expect_one_reason(result);
    ASSERT_TRUE(result.scheduler_failure);
    EXPECT_THAT(result.scheduler_failure->message, HasSubstr("MS_NODE_TIMEOUT"));
    EXPECT_GE(result.scheduler_end - result.nodes[victim].fault, 3s - 700ms);
    EXPECT_LT(result.scheduler_end - result.nodes[victim].fault, 3s + 2s);
    if (HasFailure()) return;
  }
}

TEST(ClusterSimulation, TellsOfADeadScheduler) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Plan plan = random_plan(seed);
    plan.scheduler_start = 0ms;
    for (NodePlan& node : plan.nodes) {
      node.start = std::chrono::milliseconds(seed % 100);
      node.fate_after = 10s;
    }
    plan.scheduler_crash = 2s;
    const RunResult result = Simulator(plan).run();
    expect_invariants(plan, result);
    for (const NodeResult& node : result.nodes) {
      ASSERT_TRUE(node.failure);
      EXPECT_THAT(node.failure->message, AllOf(Mentions("scheduler:1", "gone"), HasSubstr("step")));
      EXPECT_LT(node.end, TimePoint{} + 3s);
    }
    if (HasFailure()) return;
  }
}

TEST(ClusterSimulation, RepeatsTheFirstReasonOfAFailedWorker) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Plan plan = random_plan(seed);
    std::size_t first = 0;
    for (std::size_t i = 0; i < plan.worker_num; ++i) {  // all fail, at times a second apart
      plan.nodes[i].fate = i % 2 == 0 ? Fate::leaves_failed : Fate::crashes;
      plan.nodes[i].fate_after = std::chrono::seconds(1 + (i + seed) % plan.worker_num);
      if (plan.nodes[i].fate_after < plan.nodes[first].fate_after) first = i;
    }
    const RunResult result = Simulator(plan).run();
    expect_invariants(plan, result);
    expect_one_reason(result);
    ASSERT_TRUE(result.scheduler_failure);
    const std::string expected = first % 2 == 0 ? fmt::format("script {} failed", first) : "is gone";
    EXPECT_THAT(result.scheduler_failure->message,
                AllOf(HasSubstr(expected), HasSubstr(fmt::format("node '{}'", plan.nodes[first].node_id))));
    if (first % 2 == 0) {
      EXPECT_EQ(result.scheduler_failure->exit_code, 3);
    }
    if (HasFailure()) return;
  }
}

TEST(ClusterSimulation, SaysWhoCameWhenTooFewDo) {
  Plan plan = plan_of(1, 4);
  plan.nodes.resize(2);
  plan.nodes[1].node_id = "blue";
  plan.nodes[1].start = 100ms;
  const RunResult result = Simulator(plan).run();
  expect_invariants(plan, result);
  expect_one_reason(result);
  EXPECT_THAT(result.scheduler_failure->message,
              AllOf(HasSubstr("MS_TOPO_TIMEOUT"), HasSubstr("2 of 4 workers came, 2 missing"),
                    Mentions("registered", "rank 0", "1 without", "MS_NODE_ID"),
                    Mentions("absent", "2 workers", "never", "1-3")));
  EXPECT_EQ(result.scheduler_failure->exit_code, exit_code_timeout);
}

TEST(ClusterSimulation, RefusesTheRedundantWorkerAndGoesOn) {
  Plan plan = plan_of(1, 2);
  plan.nodes.push_back({.node_id = "extra", .start = 100ms});
  const RunResult result = Simulator(plan).run();
  expect_invariants(plan, result);
  EXPECT_FALSE(result.scheduler_failure);
  ASSERT_TRUE(result.nodes[2].failure);
  EXPECT_EQ(result.nodes[2].failure->exit_code, exit_code_refused);
  EXPECT_THAT(result.nodes[2].failure->message,
              AllOf(HasSubstr("all of its 2 workers"), HasSubstr("MS_WORKER_NUM")));
}

TEST(ClusterSimulation, RefusesADuplicateIdAndGoesOnWithTheFirst) {
  Plan plan = plan_of(1, 2);
  plan.nodes.insert(plan.nodes.begin() + 1, {.node_id = "0", .start = 100ms});
  plan.nodes[2].start = 300ms;
  const RunResult result = Simulator(plan).run();
  EXPECT_FALSE(result.scheduler_failure);
  ASSERT_TRUE(result.nodes[1].failure);
  EXPECT_THAT(result.nodes[1].failure->message,
              AllOf(HasSubstr("'0'"), HasSubstr("MS_NODE_ID"), HasSubstr("taken")));
  EXPECT_FALSE(result.nodes[0].failure);
  EXPECT_FALSE(result.nodes[2].failure);
}

TEST(ClusterSimulation, LetsAServerHaveTheIdOfAWorker) {
  Plan plan = plan_of(1, 2);
  plan.server_num = 1;
  plan.nodes.push_back({.role = Role::server, .node_id = "0"});
  const RunResult result = Simulator(plan).run();
  expect_invariants(plan, result);
  EXPECT_FALSE(result.scheduler_failure);
  EXPECT_TRUE(result.nodes[2].job_ended);
}

TEST(ClusterSimulation, RefusesAnotherWorkerNumberAndNamesBoth) {
  Plan plan = plan_of(1, 2);
  plan.nodes.push_back({.node_id = "odd", .worker_num = 8});
  plan.nodes[1].start = 300ms;
  const RunResult result = Simulator(plan).run();
  EXPECT_FALSE(result.scheduler_failure);
  ASSERT_TRUE(result.nodes[2].failure);
  EXPECT_THAT(result.nodes[2].failure->message, Mentions("MS_WORKER_NUM", "8 there", "and 2", "scheduler"));
}

TEST(ClusterSimulation, GivesUpAfterTheRetriesWithoutAScheduler) {
  Plan plan = plan_of(1, 2);
  plan.scheduler_start = 100s;
  const RunResult result = Simulator(plan).run();
  expect_invariants(plan, result);
  for (const NodeResult& node : result.nodes) {
    ASSERT_TRUE(node.failure);
    EXPECT_THAT(node.failure->message, AllOf(HasSubstr("scheduler:1"), HasSubstr("MS_CLUSTER_RETRY_NUM")));
    EXPECT_GE(node.end, TimePoint{} + 15s);
    EXPECT_LT(node.end, TimePoint{} + 16s);
  }
}

TEST(ClusterSimulation, TellsEveryoneOfAnInterruptedScheduler) {
  Plan plan = plan_of(1, 3);
  for (NodePlan& node : plan.nodes) node.fate_after = 10s;
  plan.scheduler_interrupt = 1s;
  const RunResult result = Simulator(plan).run();
  expect_invariants(plan, result);
  expect_one_reason(result);
  EXPECT_EQ(result.scheduler_failure->exit_code, exit_code_interrupted);
}

TEST(ClusterSimulation, EndsForEveryoneHoweverTheNetworkBehaves) {
  std::size_t well = 0;
  std::size_t formed = 0;
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Plan plan = random_plan(seed);
    RandomStream random(seed, hash_text("faults"));
    plan.network.drop = random.uniform(0) < 0.5 ? 0.05 * random.uniform(1) : 0;
    plan.network.duplicate = random.uniform(2) < 0.5 ? 0.3 * random.uniform(3) : 0;
    plan.network.reorders = random.uniform(4) < 0.5;
    plan.network.cut = random.uniform(5) < 0.3 ? 0.02 * random.uniform(6) : 0;
    if (random.uniform(7) < 0.2) plan.scheduler_crash = std::chrono::milliseconds(random.below(8, 8000));
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
      if (random.uniform(20 + 3 * i) > 0.15) continue;
      plan.nodes[i].fate = static_cast<Fate>(random.below(21 + 3 * i, 5));
      plan.nodes[i].before_roster = random.uniform(22 + 3 * i) < 0.3;
    }
    const RunResult result = Simulator(plan).run();
    expect_invariants(plan, result);
    well += result.scheduler_ended && !result.scheduler_failure;
    formed += result.nodes[0].roster != nullptr;
    if (HasFailure()) return;
  }
  fmt::print("20000 seeds: {} formed, {} ended well\n", formed, well);
  EXPECT_GT(formed, 10000u);
  EXPECT_GT(well, 2000u);
}

TEST(ClusterSimulation, FormsOneThousandNodesAndTellsThemOfADeath) {
  Plan plan = plan_of(7, 1000);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    plan.nodes[i].node_id = i % 3 == 0 ? std::to_string(i) : fmt::format("node-{}", i);
    plan.nodes[i].host = fmt::format("host-{}", i / 8);
    plan.nodes[i].fate_after = 30s;
    plan.nodes[i].start = std::chrono::milliseconds((i * 7919) % 1000);
  }
  plan.nodes[613].fate = Fate::crashes;
  plan.nodes[613].fate_after = 1500ms;
  const RunResult result = Simulator(plan).run();
  expect_invariants(plan, result);
  expect_one_reason(result);
  EXPECT_THAT(result.scheduler_failure->message, HasSubstr("node-613"));
  for (const NodeResult& node : result.nodes) EXPECT_LT(node.end - result.nodes[613].fault, 1200ms);
}

TEST(ClusterSimulation, FormsTenThousandNodesAndTellsThemOfADeath) {
  Plan plan = plan_of(7, 10'000);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    plan.nodes[i].host = fmt::format("host-{}", i / 8);
    plan.nodes[i].fate_after = 30s;
    plan.nodes[i].start = std::chrono::milliseconds((i * 7919) % 1000);
  }
  plan.nodes[6131].fate = Fate::crashes;
  plan.nodes[6131].fate_after = 1500ms;
  const RunResult result = Simulator(plan).run();
  expect_invariants(plan, result);
  expect_one_reason(result);
  EXPECT_THAT(result.scheduler_failure->message, HasSubstr("worker 6131"));
  for (const NodeResult& node : result.nodes) EXPECT_LT(node.end - result.nodes[6131].fault, 1200ms);
}

}  // namespace
}  // namespace muster::cluster::sim
