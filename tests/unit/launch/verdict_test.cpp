#include "muster/launch/verdict.h"

#include <gmock/gmock.h>

#include <csignal>

namespace muster::launch {
namespace {
namespace verdict_test {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::SizeIs;

constexpr int exited(int code) { return code << 8; }  // as waitpid tells it

TEST(Verdict, BlamesTheWorkerAndNotTheSchedulerThatReportsIt) {
  const std::vector<ProcessEnd> ends = {{.label = "scheduler", .role = "scheduler", .wait_status = exited(1)},
                                        {.label = "worker 0", .role = "worker", .wait_status = exited(69)},
                                        {.label = "worker 1", .role = "worker", .wait_status = exited(3)}};
  EXPECT_THAT(cause_among(ends, {0, 1, 2}), Eq(2));
  EXPECT_THAT(cause_among(ends, {0, 1}), Eq(0));
}

TEST(Verdict, BlamesALostHostBeforeThoseThatMissedIt) {
  const std::vector<ProcessEnd> ends = {{.label = "worker 0", .role = "worker", .wait_status = exited(1)},
                                        {.label = "worker 1", .role = "worker", .host = "b", .loss = "gone"}};
  EXPECT_THAT(cause_among(ends, {0, 1}), Eq(1));
  EXPECT_THAT(exit_code_of(ends[1]), Eq(69));
  EXPECT_THAT(verdicts(ends),
              Eq("how its processes ended: worker 0 exited with code 1; worker 1 was lost with its host"));
}

ProcessEnd worker(int rank, int wait_status, std::vector<std::string> last_lines = {}) {
  return {.label = "worker " + std::to_string(rank),
          .role = "worker",
          .wait_status = wait_status,
          .last_lines = std::move(last_lines)};
}

ProcessEnd scheduler_that_says(const std::string& reason) {
  return {
      .label = "scheduler",
      .role = "scheduler",
      .wait_status = exited(3),
      .last_lines = {"muster[scheduler] warning: worker 0 (node '0' at ::1, pid 4) is gone: it comes back",
                     "muster[scheduler] error: " + reason}};
}

TEST(Verdict, BlamesTheOneThatTheSchedulerNamesWhereOneThatWasToldIsGoneFirst) {
  const auto says = scheduler_that_says("worker 1 (node '1' at 127.0.0.1, pid 5) failed: worker 0 was slow");
  const std::vector<ProcessEnd> ends = {says, worker(0, exited(3)), worker(1, exited(3)),
                                        worker(2, exited(3))};
  EXPECT_THAT(cause_among(ends, {1, 3, 0, 2}), Eq(2));
}

TEST(Verdict, BlamesTheOneThatAnotherHostsWorkersNameWhereTheSchedulerIsElsewhere) {
  const std::string told = "muster.JobAbortedError: worker 12 (node '12' at 10.0.0.7, pid 5) failed: exited";
  const std::vector<ProcessEnd> ends = {worker(1, exited(1)), worker(11, exited(1), {told, "atexit ran"}),
                                        worker(12, exited(1))};
  EXPECT_THAT(cause_among(ends, {1, 0, 2}), Eq(2));
}

TEST(Verdict, BlamesNoOneThatCrashedBecauseItWasTold) {
  const auto says =
      scheduler_that_says("worker 1 (node '1' at 127.0.0.1, pid 5) failed: exited with status 3");
  constexpr int aborted = SIGABRT;
  EXPECT_THAT(cause_among({says, worker(0, aborted), worker(1, exited(3))}, {1, 2, 0}), Eq(2));
}

TEST(Verdict, BlamesTheOneThatWasKilledWhoeverIsNamed) {
  const auto says = scheduler_that_says("worker 1 (node '1' at 127.0.0.1, pid 5) failed: connection reset");
  EXPECT_THAT(cause_among({says, worker(0, SIGKILL), worker(1, exited(1))}, {2, 1, 0}), Eq(1));
}

TEST(Verdict, BlamesTheFirstThatEndedWhereTheNamedOneHasNotFailed) {
  const auto says = scheduler_that_says("worker 2 (node '2' at 127.0.0.1, pid 5) is gone: no heartbeat came");
  EXPECT_THAT(cause_among({says, worker(0, exited(1)), worker(1, exited(1))}, {2, 1, 0}), Eq(2));
}

TEST(Verdict, BelievesNoOtherWordsThanThoseOfAReason) {
  const auto names = [](const std::string& line) {
    return named_culprit({worker(1, exited(1), {line}), worker(2, exited(1))});
  };
  EXPECT_THAT(names("muster error: worker 2 (node '2' at ::1, pid 5) is gone: killed"), Eq("worker 2"));
  EXPECT_THAT(names("muster warning: worker 2 (node '2' at ::1, pid 5) is gone: killed"), Eq(std::nullopt));
  EXPECT_THAT(names("muster error: worker 2 (node '2' at ::1, pid 5) lost its peers"), Eq(std::nullopt));
  EXPECT_THAT(names("muster error: worker 20 (node '20' at ::1, pid 5) failed: no"), Eq(std::nullopt));
  EXPECT_THAT(names("ValueError: worker 2 failed: no"), Eq(std::nullopt));
}

TEST(Verdict, FoldsThoseThatEndedAlike) {
  std::vector<ProcessEnd> ends;
  for (int i = 0; i < 10; ++i)
    ends.push_back({.label = "worker " + std::to_string(i), .role = "worker", .wait_status = exited(69)});
  EXPECT_THAT(verdicts(ends), Eq("how its processes ended: worker 0, worker 1, worker 2, worker 3, worker 4, "
                                 "worker 5, worker 6, worker 7, 2 more exited with code 69"));
}

TEST(Verdict, BlamesWhoFailedBeforeThoseWhoSayThatTheyFollowed) {
  const std::vector<ProcessEnd> ends = {
      {.label = "worker 0", .role = "worker", .wait_status = exited(1), .follows_another = true},
      {.label = "worker 1", .role = "worker", .wait_status = exited(1)}};
  EXPECT_THAT(cause_among(ends, {0, 1}), Eq(1));
}

TEST(Failures, AreAlikeButForTheirOwnNumbersAndAddresses) {
  std::vector<FailedAlike> failures;
  add_failure(failures, "worker 0", {"ValueError: rank 0 has <Net at 0x7f12>"});
  add_failure(failures, "worker 1", {"ValueError: rank 1 has <Net at 0x55aa>"});
  add_failure(failures, "worker 2", {"ValueError: rank 0 has <Net at 0x1>"});
  add_failure(failures, "worker 3", {"ValueError: no shard 3"});
  ASSERT_THAT(failures, SizeIs(3));
  EXPECT_THAT(failures[0].labels, ElementsAre("worker 0", "worker 1"));
  EXPECT_THAT(failures[0].lines, ElementsAre("ValueError: rank 0 has <Net at 0x7f12>"));
  EXPECT_THAT(failures[2].labels, ElementsAre("worker 3"));
}

TEST(Verdict, SaysTheHostWhereThereAreSeveral) {
  EXPECT_THAT(place_of("worker 1", ""), Eq("worker 1"));
  EXPECT_THAT(place_of("worker 1", "b"), Eq("worker 1 on host b"));
}

TEST(Verdict, SaysThatAServiceFailedBeforeItsTime) {
  const ProcessEnd end{.label = "sshd", .role = "sshd", .is_service = true, .wait_status = exited(255)};
  EXPECT_THAT(describe(end), Eq("exited with code 255 before the work had ended"));
}

}  // namespace verdict_test
}  // namespace
}  // namespace muster::launch
