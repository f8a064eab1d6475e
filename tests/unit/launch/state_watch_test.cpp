#include "muster/launch/state_watch.h"

#include <gmock/gmock.h>

namespace muster::launch {
namespace {
namespace state_watch_test {

using cluster::message::Status;
using ::testing::Eq;
using ::testing::Optional;
using namespace std::chrono_literals;

TEST(StepRate, IsThatOfTheLastSeconds) {
  StepRate rate;
  EXPECT_THAT(rate.per_second(), Eq(std::nullopt));
  const TimePoint begin{};
  rate.add(begin, 0);
  EXPECT_THAT(rate.per_second(), Eq(std::nullopt));
  rate.add(begin + 2s, 10);
  EXPECT_THAT(rate.per_second(), Optional(5.0));
  for (int i = 3; i <= 30; ++i) rate.add(begin + std::chrono::seconds(i), 100u * static_cast<unsigned>(i));
  EXPECT_THAT(rate.per_second(), Optional(100.0));
}

TEST(StepRate, StartsAnewAfterARecovery) {
  StepRate rate;
  rate.add(TimePoint{}, 100);
  rate.add(TimePoint{} + 1s, 40);
  EXPECT_THAT(rate.per_second(), Eq(std::nullopt));
}

TEST(StateText, SaysWhoIsThereAndHowFastItGoes) {
  JobStatus job{.epoch = 2, .status = {.worker_num = 2, .nodes = {{.role = cluster::Role::worker}}}};
  StepRate rate;
  EXPECT_THAT(state_text(job, rate, TimePoint{}), Eq("forming, 1 of 2 workers"));
  job.status.state = Status::State::recovering;
  EXPECT_THAT(state_text(job, rate, TimePoint{}), Eq("recovering, 1 of 2 workers, epoch 2"));
  job.status.state = Status::State::running;
  EXPECT_THAT(state_text(job, rate, TimePoint{}), Eq("running"));
  job.status.nodes[0].step = 10;
  EXPECT_THAT(state_text(job, rate, TimePoint{}), Eq("running, step 10"));
  job.status.nodes[0].step = 15;
  EXPECT_THAT(state_text(job, rate, TimePoint{} + 2s), Eq("running, step 15, 2.5 steps/s"));
  job.status.state = Status::State::ended;
  EXPECT_THAT(state_text(job, rate, TimePoint{}), Eq("ending"));
}

}  // namespace state_watch_test
}  // namespace
}  // namespace muster::launch
