#include "muster/launch/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace muster::launch {
namespace {

using cluster::Role;
using cluster::WorkPhase;
using cluster::message::Status;
using ::testing::HasSubstr;

JobStatus job() {
  Status status{.state = Status::State::running,
                .worker_num = 3,
                .age = std::chrono::seconds(90),
                .without_step = std::chrono::milliseconds(400)};
  status.nodes.push_back({.role = Role::worker,
                          .node_id = "0",
                          .address = "10.0.0.7",
                          .pid = 411,
                          .has_rank = true,
                          .is_connected = true,
                          .epoch = 2,
                          .step = 41,
                          .activity = {WorkPhase::computing, CallKind::all_reduce, 18, 0, 3},
                          .silence = std::chrono::milliseconds(200)});
  status.nodes.push_back({.role = Role::worker,
                          .node_id = "blue",
                          .rank = 1,
                          .address = "10.0.0.8",
                          .pid = 5,
                          .has_rank = true});
  return {.scheduler = "10.0.0.5:8118", .job_id = 0xabc, .epoch = 2, .status = status};
}

TEST(Status, IsATableOfTheLiveRoster) {
  EXPECT_EQ(
      status_text(job()),
      "job 0000000000000abc at 10.0.0.5:8118: running, epoch 2, since 90 s, last step finished 0.4 s ago\n"
      "role    rank  node  host      process  epoch  step          doing             last heartbeat\n"
      "worker  0     0     10.0.0.7  411      2      41 (epoch 3)  in all_reduce 18  0.2 s ago\n"
      "worker  1     blue  10.0.0.8  5        0      -             not connected     0.0 s ago\n"
      "absent: 1 worker\n");
}

TEST(Status, HasTheNumbersOfProcessesThatTellThem) {
  JobStatus told = job();
  told.status.nodes[0].stats = cluster::ProcessStats{
      .loss = 0.5, .memory_bytes = std::uint64_t{402} << 20, .metrics = {{"accuracy", 0.75}}};
  told.status.nodes[0].pace = {.window_us = 10'000'000,
                               .steps = 100,
                               .spent = {.samples = 3200, .cpu_us = 9'000'000, .waiting_us = 6'200'000}};
  told.status.slow = {{1, cluster::SlowCause::reading_data, 58'300, 7500, 100'000}};
  const std::string text = status_text(told);
  EXPECT_THAT(text, HasSubstr("last heartbeat  loss  step time  waiting  memory   cores\n"));
  EXPECT_THAT(text, HasSubstr("0.2 s ago       0.5   100 ms     62 %     402 MiB  0.9\n"));
  EXPECT_THAT(text, HasSubstr("0.0 s ago       -     -          -        -        -\n"));
  EXPECT_THAT(text,
              HasSubstr("\nrank 1 holds up the others in each step (100 ms): reading its data takes 58.3 "
                        "ms, and the others 7.5 ms\n"));
  const auto json = nlohmann::json::parse(status_json(told));
  const auto& node = json["nodes"][0];
  EXPECT_EQ(node["loss"], 0.5);
  EXPECT_EQ(node["learning_rate"], nullptr);
  EXPECT_EQ(node["metrics"]["accuracy"], 0.75);
  EXPECT_EQ(node["memory_bytes"], 402 << 20);
  EXPECT_EQ(node["step_seconds"], 0.1);
  EXPECT_EQ(node["samples_per_second"], 320);
  EXPECT_EQ(node["cpu_cores"], 0.9);
  EXPECT_EQ(node["time_shares"]["waiting"], 0.62);
  EXPECT_EQ(json["nodes"][1]["time_shares"], nullptr);
  EXPECT_EQ(json["slow"][0]["cause"], "reading_data");
}

// Two workers, and a server on which one of them waits for the other.
JobStatus job_with_server() {
  JobStatus made = job();
  made.status.worker_num = 2;
  made.status.server_num = 2;
  made.status.nodes[0].activity = {.phase = WorkPhase::computing, .awaited = {.first = 0, .count = 2}};
  made.status.nodes.push_back(
      {.role = Role::server,
       .node_id = "s0",
       .address = "10.0.0.9",
       .pid = 6,
       .has_rank = true,
       .is_connected = true,
       .activity = {.phase = WorkPhase::serving,
                    .awaited = {.first = 1, .count = 1},
                    .serving = {.rows = 40'000, .size_bytes = 13'000'000, .updates = 41, .waiting = 1}}});
  return made;
}

TEST(Metrics, HaveNoSignBeforeNan) {
  JobStatus told = job();
  told.status.nodes[0].stats =
      cluster::ProcessStats{.loss = -std::numeric_limits<double>::quiet_NaN(),
                            .metrics = {{"mae", -std::numeric_limits<double>::infinity()}}};
  const std::string text = metrics_text(told);
  EXPECT_THAT(text, HasSubstr("host=\"10.0.0.7\"} NaN\n"));
  EXPECT_THAT(text, HasSubstr(" -inf\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("-nan")));
}

TEST(Status, SaysWhatParameterServersHaveAndWhoWaitsOnThem) {
  const std::string text = status_text(job_with_server());
  EXPECT_THAT(text, HasSubstr("waiting for parameter server 0 and 1 more"));
  EXPECT_THAT(text, HasSubstr("serving 40000 rows, 12.4 MiB; 1 worker waits for rank 1"));
  EXPECT_THAT(text, HasSubstr("absent: 1 server\n"));
  EXPECT_THAT(status_line(job_with_server()), HasSubstr("2 of 2 workers, 1 of 2 servers, step 41"));
  const auto json = nlohmann::json::parse(status_json(job_with_server()));
  EXPECT_EQ(json["nodes"][0]["awaited"], 0);
  EXPECT_EQ(json["nodes"][1]["awaited"], nullptr);
  EXPECT_EQ(json["nodes"][2]["awaited"], 1);
  const auto& serving = json["nodes"][2]["serving"];
  EXPECT_EQ(serving["rows"], 40'000);
  EXPECT_EQ(serving["size_bytes"], 13'000'000);
  EXPECT_EQ(serving["updates"], 41);
  EXPECT_EQ(serving["waiting_workers"], 1);
  EXPECT_EQ(json["nodes"][0]["serving"], nullptr);
}

TEST(Status, IsOneLineForALogThatIsFollowed) {
  EXPECT_EQ(status_line(job()), "running, 2 of 3 workers, step 41 (epoch 3), worker 1 not connected");
  JobStatus forming = job();
  forming.status.state = Status::State::forming;
  forming.status.text = "missing: worker 2";
  forming.status.nodes.clear();
  EXPECT_EQ(status_line(forming), "forming, 0 of 3 workers: missing: worker 2");
  EXPECT_EQ(status_json(job(), false).find('\n'), status_json(job(), false).size() - 1);
}

TEST(Status, IsOverWhenEveryWorkerHasLeft) {
  JobStatus left = job();
  for (auto& node : left.status.nodes) node.has_left = true;
  EXPECT_FALSE(is_over(left)) << "a third worker is to come";
  left.status.worker_num = 2;
  EXPECT_TRUE(is_over(left));
  left.status.nodes[1].has_left = false;
  EXPECT_FALSE(is_over(left));
  left.status.state = Status::State::ended;
  EXPECT_TRUE(is_over(left));
}

TEST(Status, IsJsonForPrograms) {
  const auto json = nlohmann::json::parse(status_json(job()));
  EXPECT_EQ(json["job"], "0000000000000abc");
  EXPECT_EQ(json["state"], "running");
  EXPECT_EQ(json["absent_workers"], 1);
  const auto& node = json["nodes"][0];
  EXPECT_EQ(node["rank"], 0);
  EXPECT_EQ(node["node_id"], "0");
  EXPECT_EQ(node["address"], "10.0.0.7");
  EXPECT_EQ(node["pid"], 411);
  EXPECT_EQ(node["epoch"], 2);
  EXPECT_EQ(node["step"], 41);
  EXPECT_EQ(node["train_epoch"], 3);
  EXPECT_EQ(node["phase"], "computing");
  EXPECT_EQ(node["call"], "all_reduce");
  EXPECT_EQ(node["call_number"], 18);
  EXPECT_EQ(node["last_heartbeat_s"], 0.2);
  EXPECT_EQ(json["nodes"][1]["step"], nullptr);
  EXPECT_EQ(json["nodes"][1]["call"], nullptr);
}

TEST(Status, KeepsJsonWholeWhateverANodeIsCalled) {
  JobStatus odd = job();
  odd.status.nodes[0].address = "\xff\"\n";
  EXPECT_TRUE(nlohmann::json::accept(status_json(odd)));
}

TEST(Scheduler, IsFoundByTheFlagBeforeTheVariables) {
  const FixedEnvironment variables({{"MS_SCHED_HOST", "::1"}, {"MS_SCHED_PORT", "8118"}});
  EXPECT_EQ(find_scheduler("alpha:9000", variables)->host, "alpha");
  EXPECT_EQ(find_scheduler("", variables)->host, "::1");
  EXPECT_EQ(find_scheduler("", variables)->port, 8118);
  const auto none = find_scheduler("", FixedEnvironment({}));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("--scheduler HOST:PORT"));
  const FixedEnvironment unset({{"MS_SCHED_HOST", ""}, {"MS_SCHED_PORT", ""}});
  EXPECT_THAT(find_scheduler("", unset).error().message, HasSubstr("--scheduler HOST:PORT"));
}

}  // namespace
}  // namespace muster::launch
