#include "muster/launch/runs/autopsy.h"

#include <gmock/gmock.h>

namespace muster::launch {
namespace {
namespace autopsy_test {

using telemetry::Flight;
using telemetry::FlightRecord;
using telemetry::FlightState;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t all = 7;  // the group of all ranks
constexpr std::int64_t second = 1'000'000'000;

Flight flight(std::uint32_t rank, std::vector<FlightRecord> records, std::uint64_t epoch = 1) {
  Flight made{.process = {.rank = rank, .world_size = 3, .pid = static_cast<std::int32_t>(100 + rank)},
              .groups = {{.id = all + epoch - 1, .epoch = epoch, .rank = rank, .size = 3}}};
  for (FlightRecord& record : records) {
    record.serial = made.records.size() + 1;
    if (record.group == 0) record.group = all + epoch - 1;
    made.records.push_back(record);
  }
  return made;
}

FlightRecord call(std::uint64_t number, FlightState state, CallKind kind = CallKind::all_reduce) {
  const auto begin = static_cast<std::int64_t>(number) * second;
  return {.number = number,
          .count = 4,
          .begin_ns = begin,
          .end_ns = state == FlightState::started ? 0 : begin + second / 2,
          .kind = kind,
          .dtype = DType::float32,
          .state = state,
          .code = Code::peer_lost};
}
constexpr auto done = FlightState::completed, open = FlightState::started, failed = FlightState::failed;

FlightRecord message(CallKind kind, std::uint32_t peer, std::uint64_t number, FlightState state) {
  FlightRecord made = call(number, state, kind);
  made.peer = peer;
  return made;
}

std::string findings(std::vector<Flight> flights, std::vector<JobEvent> events = {}, bool runs = false) {
  return findings_of(
      {.flights = std::move(flights), .events = std::move(events), .now_ns = 10 * second, .runs = runs});
}

TEST(Autopsy, NamesTheRankThatDidNotComeToACallAndWhatWasSaidOfIt) {
  const auto text = findings({flight(0, {call(1, done), call(2, failed)}), flight(1, {call(1, done)}),
                              flight(2, {call(1, done), call(2, failed)})},
                             {{"failed", 3, "worker 1", "worker 1 (pid 101) was killed by signal 9"},
                              {"failed", 4, "worker 0", "worker 0 followed"}});
  EXPECT_THAT(text, HasSubstr("Rank 1 is the first that the others missed: it did not come to all_reduce #2 "
                              "(4 x float32, sum), in which ranks 0, 2 waited for it"));
  EXPECT_THAT(text, HasSubstr("worker 1 (pid 101) was killed by signal 9"));
  EXPECT_THAT(text, HasSubstr("its last call: all_reduce #1 (4 x float32, sum), completed"));
  EXPECT_THAT(text, Not(HasSubstr("worker 0 followed")));
}

TEST(Autopsy, FollowsWhoWaitsForWhomToTheRankThatWaitsForNobody) {
  // Rank 0 waits in a call for rank 1, which waits for a message of rank 2, which has done nothing more.
  const auto text = findings({flight(0, {call(1, done), call(2, open)}),
                              flight(1, {call(1, done), message(CallKind::receive, 2, 1, open)}),
                              flight(2, {call(1, done)})});
  EXPECT_THAT(text,
              HasSubstr("Rank 2 is the first that the others missed: it did not come to message #1 from "
                        "rank 2 (4 bytes), in which rank 1 waited"));
}

TEST(Autopsy, ShowsACircleOfWaits) {
  const auto text = findings({flight(0, {message(CallKind::receive, 1, 1, open)}),
                              flight(1, {message(CallKind::receive, 2, 1, open)}),
                              flight(2, {message(CallKind::receive, 0, 1, open)})});
  EXPECT_THAT(text, HasSubstr("Ranks wait for each other in a circle"));
  for (const char* line : {"rank 0 waits for rank 1", "rank 1 waits for rank 2", "rank 2 waits for rank 0"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(Autopsy, SaysWhichRanksCalledSomethingElse) {
  const auto text = findings({flight(0, {call(1, done), call(2, failed)}),
                              flight(1, {call(1, done), call(2, failed, CallKind::barrier)}),
                              flight(2, {call(1, done), call(2, failed)})});
  EXPECT_THAT(text, HasSubstr("The ranks made different calls: rank 1 called barrier #2 at "));
  EXPECT_THAT(text, HasSubstr("where ranks 0, 2 called all_reduce #2"));
}

TEST(Autopsy, FindsTheRankThatStoppedWithinACall) {
  const auto text =
      findings({flight(0, {call(1, failed)}), flight(1, {call(1, open)}), flight(2, {call(1, failed)})});
  EXPECT_THAT(text, HasSubstr("Rank 1 stopped in all_reduce #1 (4 x float32, sum), which then failed"));
}

TEST(Autopsy, NamesTheFirstFailureWhereAllCameToTheCall) {
  FlightRecord later = call(1, failed), timeout = call(1, failed);
  later.end_ns += second;
  timeout.code = Code::timeout;
  const auto text = findings({flight(0, {later}), flight(1, {timeout}), flight(2, {later})});
  EXPECT_THAT(text,
              HasSubstr("The first that did not end well is all_reduce #1 (4 x float32, sum) of rank 1"));
  EXPECT_THAT(text, HasSubstr("(timeout)"));
}

TEST(Autopsy, TellsWhatEndedBadlyWhereNoCallShowsIt) {
  const std::vector<JobEvent> events = {{"failed", 3, "server 0", "server 0 (pid 7) was killed by signal 9"},
                                        {"failed", 4, "scheduler", "scheduler (pid 1) exited with code 69"},
                                        {"error", 5, "scheduler", "server 0 is gone"}};
  const std::vector<Flight> flights = {flight(0, {call(1, done)}), flight(1, {call(1, done)}),
                                       flight(2, {call(1, done)})};
  EXPECT_THAT(findings(flights, events), HasSubstr("No rank diverged: all calls that were begun were "
                                                   "completed.\nWhat ended badly, the first of it first:\n"
                                                   "  server 0 (pid 7) was killed by signal 9\n"
                                                   "  server 0 is gone\nrank"));
  EXPECT_THAT(findings(flights), Not(HasSubstr("ended badly")));
}

TEST(Autopsy, TakesAShortWaitInARunningJobForNone) {
  std::vector<Flight> flights = {flight(0, {call(8, done), call(9, open)}), flight(1, {call(8, done)}),
                                 flight(2, {call(8, done), call(9, open)})};
  for (Flight& each : flights)
    for (FlightRecord& record : each.records) record.begin_ns = 10 * second - second / 10;
  EXPECT_THAT(findings(flights, {}, true), HasSubstr("No rank diverged"));
  EXPECT_THAT(findings(flights, {}, false), HasSubstr("Rank 1 is the first"));
}

TEST(Autopsy, TellsOfADeathThatTheJobHasRecoveredFromInItsEpoch) {
  const auto text =
      findings({flight(0, {call(1, failed)}), flight(1, {}), flight(2, {call(1, failed)}),
                flight(0, {call(1, done)}, 2), flight(1, {call(1, done)}, 2), flight(2, {call(1, done)}, 2)});
  EXPECT_THAT(text, HasSubstr("In cluster epoch 1, from which the job went on:\nRank 1 is the first"));
  EXPECT_THAT(text, HasSubstr("it made no call"));
  EXPECT_THAT(text, HasSubstr("In cluster epoch 2:\nNo rank diverged"));
}

TEST(Autopsy, ShowsStacksOfThisHangAndNotOfAnEarlierOne) {
  Flight missed = flight(1, {call(1, done), call(2, done)});
  const auto with_stacks_at = [&](std::int64_t time) {
    missed.stacks = telemetry::FlightStacks{.taken_ns = time, .text = "in_my_function"};
    return findings({flight(0, {call(1, done), call(2, done), call(3, failed)}), missed});
  };
  EXPECT_THAT(with_stacks_at(3 * second), HasSubstr("in_my_function"));
  EXPECT_THAT(with_stacks_at(2 * second), Not(HasSubstr("in_my_function")));  // while call 2 went on
}

TEST(Autopsy, BlamesNoRankWhoseFileIsElsewhere) {
  const auto text = findings({flight(0, {call(1, open)}), flight(2, {call(1, open)})});
  EXPECT_THAT(text, Not(HasSubstr("Rank 1")));
  EXPECT_THAT(text, HasSubstr("Of rank 1 there is no file here"));
  EXPECT_THAT(text, HasSubstr("All ranks of which something is known came to the same calls"));
}

TEST(Autopsy, BlamesNoRankWhoseCallsOfThatTimeAreNotKeptAnyMore) {
  Flight busy = flight(0, {call(5, done)}, 2);  // in epoch 1, too, but all that is kept of it is later
  busy.records.front().serial = 2001;
  busy.groups.push_back({.id = all, .epoch = 1, .rank = 0, .size = 3});
  const auto text = findings(
      {busy, flight(2, {call(1, failed)}), flight(1, {call(5, done)}, 2), flight(2, {call(5, done)}, 2)});
  EXPECT_THAT(text, Not(HasSubstr("Rank 0 is the first")));
  EXPECT_THAT(text,
              HasSubstr("In cluster epoch 1, from which the job went on:\nAll ranks of which something"));
  EXPECT_THAT(text, HasSubstr("Of rank 1 nothing is known: only the files of its last processes are kept"));
  EXPECT_THAT(text, HasSubstr("Of rank 0 nothing is known: more calls than are kept have been made since"));
}

}  // namespace autopsy_test
}  // namespace
}  // namespace muster::launch
