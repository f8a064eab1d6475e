#include "muster/launch/dashboard/job_history.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "muster/launch/dashboard/job_json.h"

namespace muster::launch {
namespace {
namespace job_history_test {

using cluster::Role;
using cluster::message::Status;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

JobStatus two_workers() {
  JobStatus job{.epoch = 1, .status = {.state = Status::State::running, .recovers = true, .worker_num = 2}};
  for (std::uint32_t rank : {0, 1})
    job.status.nodes.push_back(
        {.role = Role::worker,
         .node_id = std::to_string(rank),
         .rank = rank,
         .pid = 100 + static_cast<std::int32_t>(rank),
         .has_rank = true,
         .is_connected = true,
         .step = 10 + rank,
         .stats = cluster::ProcessStats{.loss = 1.0 + rank, .memory_bytes = 1000 * (rank + 1)},
         .pace = {.window_us = 1'000'000, .steps = 10, .spent = {.samples = 320}}});
  return job;
}

std::vector<std::string> kinds(const std::vector<JobEvent>& events) {
  std::vector<std::string> made;
  for (const JobEvent& event : events) made.push_back(event.kind);
  return made;
}

TEST(JobPoint, JoinsWhatTheWorkersSay) {
  const JobPoint point = point_of(two_workers(), 5);
  EXPECT_THAT(point.step, Optional(11u));
  EXPECT_THAT(point.loss, Optional(1.5));
  EXPECT_THAT(point.learning_rate, Eq(std::nullopt));
  EXPECT_THAT(point.step_seconds, Optional(0.1));
  EXPECT_THAT(point.samples, Optional(640.0));
  EXPECT_THAT(point.memory_bytes, Optional(2000.0));
}

TEST(JobJson, SaysWhoWaitsAndInWhichCall) {
  JobStatus job = two_workers();
  job.status.nodes[0].activity = {cluster::WorkPhase::computing, CallKind::receive, 7};
  job.status.nodes[1].activity.awaited.count = 1;  // parameter servers
  job.status.nodes.push_back(job.status.nodes[0]);
  job.status.nodes[2].activity = {cluster::WorkPhase::computing, CallKind::all_reduce, 18};
  const auto columns = rank_columns().get<std::vector<std::string>>();
  const auto at = [&](const char* name) {
    return static_cast<std::size_t>(std::ranges::find(columns, name) - columns.begin());
  };
  std::vector<std::pair<bool, int>> told;
  const auto state = state_json(job, 5);
  for (const auto& row : state["ranks"])
    told.emplace_back(row.at(at("calls")).get<bool>(), row.at(at("call")).get<int>());
  EXPECT_THAT(told, ElementsAre(std::pair(true, 0), std::pair(true, 0), std::pair(true, 18)));
}

TEST(RisingTime, GoesOnWhereTheClockIsSetBack) {
  RisingTime time;
  std::vector<double> told;
  for (const double wall : {100.0, 101.0, 51.0, 52.0, 103.0, 104.0}) told.push_back(time.at(wall));
  EXPECT_THAT(told, ElementsAre(100, 101, 101, 102, 103, 104));
}

TEST(JobHistory, HasPointsOfAJobWhoseClockIsSetBack) {
  JobHistory history;
  RisingTime time;
  for (const double wall : {100.0, 40.0, 41.0, 42.0}) history.add(two_workers(), time.at(wall));
  EXPECT_EQ(history.points().size(), 4u);
}

TEST(JobHistory, TellsTheStoryOfADeathAndARecovery) {
  JobHistory history;
  JobStatus job = two_workers();
  EXPECT_THAT(kinds(history.add(job, 1)), ElementsAre("formed"));
  EXPECT_THAT(history.add(job, 2), IsEmpty());
  const auto dead = job.status.nodes[1];
  job.status.nodes.pop_back();
  job.status.state = Status::State::recovering;
  job.status.text = "worker 1 is waited for";
  const auto lost = history.add(job, 3);
  EXPECT_THAT(kinds(lost), ElementsAre("lost", "recovering"));
  EXPECT_EQ(lost[0].text, "worker 1 (process 101) is gone");
  EXPECT_EQ(lost[1].text, "worker 1 is waited for");
  job.status.nodes.push_back(dead);
  job.status.nodes[1].pid = 300;
  job.status.state = Status::State::running;
  job.epoch = 2;
  const auto back = history.add(job, 4);
  EXPECT_THAT(kinds(back), ElementsAre("back", "formed"));
  EXPECT_THAT(back[0].text, HasSubstr("as process 300"));
  for (auto& node : job.status.nodes) node.has_left = true;
  EXPECT_THAT(kinds(history.add(job, 5)), ElementsAre("left", "left"));
}

TEST(JobHistory, SeesADeathBetweenTwoLooks) {
  JobHistory history;
  JobStatus job = two_workers();
  history.add(job, 1);
  job.status.nodes[0].pid = 300;
  job.epoch = 2;
  EXPECT_THAT(kinds(history.add(job, 2)), ElementsAre("lost", "back", "formed"));
}

TEST(JobHistory, TellsOfEvaluationsAndSlowRanksOnce) {
  JobHistory history;
  JobStatus job = two_workers();
  history.add(job, 1);
  job.status.nodes[0].stats->metrics = {{"accuracy", std::nan("")}};
  job.status.slow = {{1, cluster::SlowCause::reading_data, 9, 1, 20}};
  EXPECT_THAT(kinds(history.add(job, 2)), ElementsAre("evaluated", "slow"));
  EXPECT_THAT(history.add(job, 3), IsEmpty()) << "NaN is not news again";
  job.status.slow.clear();
  EXPECT_THAT(kinds(history.add(job, 4)), ElementsAre("not_slow"));
}

TEST(JobHistory, KeepsTheWholeTimeOfAJobThatLasts) {
  JobHistory history;
  for (int i = 0; i < 100'000; ++i) history.add(JobPoint{.time = static_cast<double>(i)});
  EXPECT_LE(history.points().size(), JobHistory::points_max);
  EXPECT_GE(history.points().size(), JobHistory::points_max / 3);
  EXPECT_EQ(history.points().front().time, 0);
  EXPECT_GT(history.points().back().time, 99'000);
}

TEST(JobJson, SaysAsManyNumbersAsThereAreColumns) {
  const auto state = state_json(two_workers(), 5);
  for (const auto& row : state["ranks"]) EXPECT_EQ(row.size(), rank_columns().size());
  EXPECT_THAT(point_from(state).loss, Optional(1.5));
}

TEST(JobJson, HasAWordForALossThatIsNoNumber) {
  JobStatus job = two_workers();
  for (auto& node : job.status.nodes) node.stats->loss = std::nan("");
  job.status.nodes[0].address = "\xff\"\n";
  const auto line = line_of(state_json(job, 5));
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto state = nlohmann::json::parse(line);
  EXPECT_EQ(state["point"]["loss"], "nan");
  EXPECT_TRUE(std::isnan(point_from(state).loss.value()));
}

}  // namespace job_history_test
}  // namespace
}  // namespace muster::launch
