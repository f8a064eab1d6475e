#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/base/base.h"
#include "tests/unit/cluster/machines.h"

namespace muster::cluster {
namespace {
namespace parameter_check_test {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint32_t worker_num = 3;
constexpr std::uint64_t job_id = 77;

class ParameterCheck : public ::testing::Test {
 protected:
  void form(bool strict = false) {
    for (PeerId peer = 1; peer <= worker_num; ++peer) {
      message::Register request{
          {.node_id = std::to_string(peer - 1), .address = "10.0.0.7", .process_space = std::to_string(peer)},
          worker_num,
          0};
      request.strict = strict && peer == 2;
      request.traits = traits;
      machine.step(scheduler_event::Received{peer, {0, 0, request}}, clock.now());
    }
  }
  // What worker 0 is told when worker `rank` says its hashes.
  std::vector<std::string> say(std::uint32_t rank, std::uint64_t step, std::vector<std::uint32_t> hashes) {
    ParameterReport report{.series = 5, .step = step, .reduces = reduces, .hashes = std::move(hashes)};
    if (rank == 0) report.names = {"conv1.weight", "conv1.bias"};
    return say(rank, std::move(report));
  }
  std::vector<std::string> say(std::uint32_t rank, ParameterReport report, std::uint64_t epoch = 1) {
    const auto actions = machine.step(
        scheduler_event::Received{rank + 1, {job_id, epoch, message::Parameters{std::move(report)}}},
        clock.now());
    std::vector<std::string> told;
    for (const auto& said : sent_to<message::Stuck>(1, actions)) told.push_back(said.text);
    return told;
  }

  ManualClock clock;
  bool reduces = false;
  Traits traits;
  SchedulerMachine machine{{.worker_num = worker_num,
                            .topo_timeout = 60s,
                            .node_timeout = 600s,
                            .job_id = job_id,
                            .epoch = 1,
                            .pid = 1,
                            .process_space = "here"},
                           clock.now()};
};

TEST_F(ParameterCheck, IsSilentWhereAllWorkersSayTheSame) {
  form();
  for (std::uint64_t step : {1, 2, 8})
    for (std::uint32_t rank = 0; rank < worker_num; ++rank) EXPECT_THAT(say(rank, step, {1, 2}), IsEmpty());
}

TEST_F(ParameterCheck, NamesTheParameterTheRanksAndTheLineToAdd) {
  form();
  EXPECT_THAT(say(0, 1, {1, 2}), IsEmpty());
  EXPECT_THAT(say(2, 1, {1, 3}),
              ElementsAre(AllOf(HasSubstr("'conv1.bias'"), HasSubstr("ranks 0 and 2"),
                                HasSubstr("data_parallel"), HasSubstr("DistributedGradReducer"))));
}

TEST_F(ParameterCheck, NamesTheLinesOfCppToAProgram) {
  traits = {{"program", "0123"}};
  form();
  say(0, 1, {1, 2});
  EXPECT_THAT(say(2, 1, {1, 3}),
              ElementsAre(AllOf(HasSubstr("train::set_parallel_mode"), HasSubstr("TrainStep"),
                                Not(HasSubstr("set_auto_parallel_context")))));
}

TEST_F(ParameterCheck, LooksElsewhereWhereGradientsAreReduced) {
  form();
  reduces = true;
  say(0, 1, {1, 2});
  EXPECT_THAT(say(1, 1, {9, 2}), ElementsAre(HasSubstr("Gradients are reduced")));
}

TEST_F(ParameterCheck, TellsOfBatchesThatDiffer) {
  form();
  say(0, {.series = 5, .step = 8, .hashes = {7, 1}, .names = {std::string(batch_name), "conv1.weight"}});
  EXPECT_THAT(say(1, 8, {6, 1}),
              ElementsAre(AllOf(HasSubstr("different batches in step 8"), HasSubstr("ranks 0 and 1"),
                                HasSubstr("the same rows"), Not(HasSubstr("Gradients")))));
}

TEST_F(ParameterCheck, WaitsForTheNamesOfRankZero) {
  form();
  EXPECT_THAT(say(2, 1, {1, 3}), IsEmpty());
  EXPECT_THAT(say(1, 1, {1, 2}), IsEmpty());
  EXPECT_THAT(say(0, 1, {1, 3}), ElementsAre(AllOf(HasSubstr("'conv1.bias'"), HasSubstr("ranks 1 and 2"))));
}

TEST_F(ParameterCheck, TellsOnce) {
  form();
  say(0, 1, {1, 2});
  EXPECT_THAT(say(1, 1, {3, 4}), ::testing::SizeIs(1));
  EXPECT_THAT(say(2, 1, {5, 6}), IsEmpty());
  say(0, 2, {1, 2});
  EXPECT_THAT(say(1, 2, {3, 4}), IsEmpty());
}

TEST_F(ParameterCheck, ComparesEqualStepsOfEqualSeriesOnly) {
  form();
  say(0, 1, {1, 2});
  EXPECT_THAT(say(1, 2, {3, 4}), IsEmpty());
  EXPECT_THAT(say(1, {.series = 6, .step = 1, .hashes = {3, 4}}), IsEmpty());
  EXPECT_THAT(say(1, {.series = 5, .step = 1, .hashes = {3, 4}}, 9), IsEmpty()) << "another epoch";
}

TEST_F(ParameterCheck, EndsAStrictJob) {
  form(true);
  say(0, 1, {1, 2});
  EXPECT_THAT(say(1, 1, {3, 4}), IsEmpty());
  ASSERT_TRUE(machine.failure());
  EXPECT_THAT(machine.failure()->message, HasSubstr("'conv1.weight'"));
}

}  // namespace parameter_check_test
}  // namespace
}  // namespace muster::cluster
