// What people are told while a job forms.
#include "muster/cluster/forming_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machines.h"

#include "tests/unit/base/mentions.h"

namespace muster::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::uint64_t job_id = 77;

// A scheduler that waits for four workers, and nodes that beat as they should.
class Forming : public ::testing::Test {
 protected:
  static SchedulerConfig config(std::uint32_t worker_num = 4) {
    return {.worker_num = worker_num,
            .topo_timeout = 60s,
            .node_timeout = 2s,
            .job_id = job_id,
            .pid = 1,
            .process_space = "here"};
  }
  static Member named(const std::string& node_id) {
    return {.node_id = node_id, .address = "10.0.0.7", .pid = 4711, .is_named = true};
  }

  SchedulerActions receive(PeerId peer, MessageBody body, std::uint64_t job = job_id) {
    auto actions = machine.step(scheduler_event::Received{peer, {job, job == 0 ? 0u : 1u, std::move(body)}},
                                clock.now());
    note(actions);
    return actions;
  }
  SchedulerActions enter(PeerId peer, const std::string& node_id, Traits traits = {}, bool strict = false) {
    if (std::find(here.begin(), here.end(), peer) == here.end()) here.push_back(peer);
    return receive(
        peer,
        message::Register{
            .member = named(node_id), .worker_num = 4, .strict = strict, .traits = std::move(traits)},
        0);
  }
  // What is said meanwhile is in `told` (to the first node) and `logged`.
  void pass(Duration time) {
    for (const TimePoint end = clock.now() + time; clock.now() < end;) {
      clock.advance(100ms);
      for (const PeerId peer : here) receive(peer, message::Beat{});
      note(machine.step(scheduler_event::Tick{}, clock.now()));
    }
  }
  void note(const SchedulerActions& actions) {
    for (const auto& line : all_of_kind<scheduler_action::Log>(actions))
      if (line.level == log::Level::warning) logged.push_back(line.text);
    if (!here.empty())
      for (const auto& waiting : sent_to<message::Waiting>(here[0], actions)) told.push_back(waiting.text);
  }
  std::string failure() const { return machine.failure() ? machine.failure()->message : ""; }

  ManualClock clock;
  SchedulerMachine machine{config(), clock.now()};
  std::vector<PeerId> here;
  std::vector<std::string> told;
  std::vector<std::string> logged;
};

TEST_F(Forming, TellsAfterTwoSecondsWhoCameAndWhoIsAbsent) {
  enter(1, "0");
  enter(2, "1");
  enter(3, "3");
  pass(2s);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0],
            "waiting since 2 s: 3 of 4 workers came, 1 missing\n"
            "  registered: ranks 0-1, 3\n"
            "  absent: rank 2 (MS_NODE_ID=2), never seen");
  EXPECT_THAT(logged, ElementsAre(told[0])) << "the scheduler says the same";
}

TEST_F(Forming, RepeatsTheTableEveryFourSecondsWhenItChangesAndElseEverySixteen) {
  enter(1, "0");
  pass(17900ms);
  EXPECT_THAT(told, SizeIs(1));
  pass(100ms);
  EXPECT_THAT(told, SizeIs(2)) << "after 2 s and 18 s";
  enter(2, "1");
  pass(3900ms);
  EXPECT_THAT(told, SizeIs(2));
  pass(100ms);
  ASSERT_THAT(told, SizeIs(3)) << "after 22 s";
  EXPECT_THAT(told[2], HasSubstr("ranks 0-1"));
}

TEST_F(Forming, NamesNodesWithOtherIdsAndThoseWithout) {
  enter(1, "green");
  receive(2, message::Register{.member = {.node_id = "node-1f"}, .worker_num = 4}, 0);
  here.push_back(2);
  enter(3, "2");
  pass(2s);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0], AllOf(Mentions("registered", "rank 2", "green", "1 without", "MS_NODE_ID"),
                             Mentions("absent", "1 worker", "never", "0-1, 3")));
}

TEST_F(Forming, ShowsAWrongWorkerNumberAtTheAbsentRank) {
  enter(1, "0");
  receive(9, message::Register{.member = named("3"), .worker_num = 8}, 0);
  pass(2s);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0], AllOf(Mentions("absent", "3 (MS_NODE_ID=3)", "refused", "2 s", "10.0.0.7", "4711",
                                      "MS_WORKER_NUM", "8 there", "and 4"),
                             Mentions("absent", "1-2 (MS_NODE_ID is the number)", "never")));
}

TEST_F(Forming, ShowsADuplicateIdAndWhoItMayBe) {
  enter(1, "0");
  enter(2, "1");
  const auto refusals = sent_to<message::Refuse>(9, enter(9, "1"));
  here.pop_back();
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].failure.message, AllOf(Mentions("duplicate", "'1' (MS_NODE_ID)", "10.0.0.7"),
                                                 HasSubstr("; absent are ranks 2-3")));
  pass(2s);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0], AllOf(Mentions("'1'", "2 s", "10.0.0.7", "4711", "duplicate"),
                             HasSubstr("\n  registered: ranks 0-1\n")));
}

TEST_F(Forming, ForgetsARefusalOnceTheRankHasCome) {
  enter(1, "0");
  receive(9, message::Register{.member = named("3"), .worker_num = 8}, 0);
  enter(2, "3");
  pass(2s);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0], Not(HasSubstr("refused")));
}

TEST_F(Forming, ShowsUnauthorizedPeersButNotTheirControlCharacters) {
  enter(1, "0");
  for (int i = 0; i < 3; ++i)
    machine.step(scheduler_event::Rejected{900, "10.0.0.9", "it speaks TLS\x1b[31m\n"}, clock.now());
  pass(2s);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0], Mentions("10.0.0.9, 3", "connections", "2 s", "TLS\\x1b[31m\\n"));
}

TEST_F(Forming, CountsUnauthorizedPeersWhoWereTurnedAwayTogether) {
  enter(1, "0");
  machine.step(scheduler_event::Rejected{0, "10.0.0.9", "no Muster", 40}, clock.now());
  machine.step(scheduler_event::Rejected{0, "10.0.0.9", "no Muster", 2}, clock.now());
  pass(2s);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0], Mentions("10.0.0.9, 42", "connections", "2 s"));
}

TEST_F(Forming, ShowsARefusedCertificateAtTheAbsentRankThatItNames) {
  enter(1, "0");
  machine.step(scheduler_event::Rejected{.peer = 900,
                                         .address = "10.0.0.9",
                                         .reason = "certificate revoked",
                                         .claims = Member{.node_id = "2", .address = "10.0.0.9"}},
               clock.now());
  pass(2s);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0], Mentions("absent", "2 (MS_NODE_ID=2)", "2 s", "10.0.0.9", "revoked"));
  EXPECT_THAT(told[0], Not(HasSubstr("rejected peer")));
}

TEST_F(Forming, KeepsTheTableShortWhoeverKnocks) {
  enter(1, "0");
  for (int i = 0; i < 5000; ++i) {
    machine.step(scheduler_event::Rejected{900, "10.0.1." + std::to_string(i), "nonsense"}, clock.now());
    receive(100 + i, message::Register{.member = named("x" + std::to_string(i)), .worker_num = 8}, 0);
  }
  EXPECT_LT(logged.size(), 50u);
  pass(2s);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_LT(told[0].size(), 6000u);
  EXPECT_THAT(told[0], HasSubstr("more"));
}

TEST_F(Forming, FailsByTheTable) {
  enter(1, "0");
  pass(60s);
  EXPECT_EQ(failure(),
            "the job is not complete after 60 s (MS_TOPO_TIMEOUT): 1 of 4 workers came, 3 missing\n"
            "  registered: rank 0\n"
            "  absent: ranks 1-3 (MS_NODE_ID is the number), never seen");
}

TEST_F(Forming, ShowsTheTableToWhoInterruptsIt) {
  enter(1, "0");
  machine.step(scheduler_event::Interrupted{}, clock.now());
  EXPECT_THAT(failure(), Mentions("interrupted", "1", "4 workers", "3 missing"));
}

TEST_F(Forming, ShowsWhoDiedAsAbsent) {
  enter(1, "0");
  enter(2, "1");
  machine.step(scheduler_event::Closed{2}, clock.now());
  EXPECT_THAT(failure(), AllOf(HasSubstr("\n  registered: rank 0\n"),
                               Mentions("absent", "1 (MS_NODE_ID=1)", "gone", "0 s", "10.0.0.7", "4711")));
}

TEST_F(Forming, SaysOfUnauthorizedPeersAfterwardsNotMoreThanALineInTenSeconds) {
  for (PeerId peer = 1; peer <= 4; ++peer) enter(peer, std::to_string(peer - 1));
  logged.clear();
  for (int i = 0; i < 100; ++i) {
    note(
        machine.step(scheduler_event::Rejected{900, "10.0.0." + std::to_string(i), "nonsense"}, clock.now()));
    pass(100ms);
  }
  EXPECT_THAT(logged, SizeIs(1));
  EXPECT_THAT(logged[0], Mentions("10.0.0.0", "nonsense"));
}

TEST_F(Forming, NamesTheProcessThatDiffersBeforeTheRosterIsOut) {
  for (PeerId peer = 1; peer <= 3; ++peer) enter(peer, std::to_string(peer - 1), {{"script", "aa"}});
  const auto actions = enter(4, "3", {{"script", "bb"}});
  EXPECT_THAT(told,
              ElementsAre("the processes of this job differ: script is 'bb' at rank 3, 'aa' at ranks 0-2"));
  EXPECT_EQ(logged, told);
  EXPECT_THAT(sent_to<message::RosterReady>(1, actions), SizeIs(1));
}

TEST_F(Forming, EndsAStrictJobWhoseProcessesDiffer) {
  for (PeerId peer = 1; peer <= 3; ++peer)
    enter(peer, std::to_string(peer - 1), {{"script", "aa"}}, peer == 2);
  const auto actions = enter(4, "3", {{"script", "bb"}});
  EXPECT_THAT(sent_to<message::RosterReady>(1, actions), IsEmpty());
  EXPECT_THAT(failure(), AllOf(Mentions("script", "'bb'", "3, 'aa'", "0-2"), HasSubstr("MUSTER_STRICT"),
                               Not(HasSubstr("missing"))));
  EXPECT_EQ(machine.failure()->exit_code, exit_code_configuration);
}

TEST_F(Forming, ShowsWhatDiffersWhileOthersAreMissing) {
  enter(1, "0", {{"script", "aa"}});
  enter(2, "blue", {{"script", "bb"}});
  pass(2s);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0], Mentions("differs", "'aa'", "0, 'bb'", "blue"));
}

class NodeForming : public ::testing::Test {
 protected:
  NodeActions step(const NodeEvent& event) {
    auto actions = machine.step(event, {}, clock.now());
    for (const auto& line : all_of_kind<node_action::Log>(actions)) logged.push_back(line.text);
    return actions;
  }
  // Each attempt ends by `event`, or by nothing.
  void pass(Duration time, std::optional<node_event::Disconnected> event) {
    for (const TimePoint end = clock.now() + time; clock.now() < end;) {
      const auto actions = step(node_event::Tick{});
      if (event && !all_of_kind<node_action::Connect>(actions).empty()) step(*event);
      clock.advance(100ms);
    }
  }

  ManualClock clock;
  NodeMachine machine{{.member = {.node_id = "me"},
                       .topo_timeout = 60s,
                       .retry_timeout = 30s,
                       .node_timeout = 2s,
                       .receive_timeout = 40s,
                       .scheduler = "host:8118"},
                      clock.now()};
  std::vector<std::string> logged;
};

TEST_F(NodeForming, SaysAfterTwoSecondsThatNothingListens) {
  pass(3s, node_event::Disconnected{"connection refused: nothing listens at 10.0.0.5:8118", Code::not_found});
  ASSERT_THAT(logged, SizeIs(1));
  EXPECT_THAT(logged[0],
              Mentions("host:8118", "2 s", "listens", "10.0.0.5:8118", "MS_SCHED_HOST", "MS_SCHED_PORT"));
}

TEST_F(NodeForming, SaysWithinFiveSecondsThatNothingAnswers) {
  pass(4s, std::nullopt);
  ASSERT_THAT(logged, SizeIs(1));
  EXPECT_THAT(logged[0], AllOf(HasSubstr("timed out: nothing answers"), HasSubstr("firewall")));
}

TEST_F(NodeForming, SaysThatItIsUnreachable) {
  pass(3s, node_event::Disconnected{"unreachable: 10.0.0.5:8118: No route to host (errno 113)", Code::io});
  ASSERT_THAT(logged, SizeIs(1));
  EXPECT_THAT(logged[0], AllOf(HasSubstr("errno 113"), HasSubstr("route")));
}

TEST_F(NodeForming, SaysThatItsRegistrationIsNotAnswered) {
  step(node_event::Tick{});
  step(node_event::Connected{});
  pass(3s, std::nullopt);
  ASSERT_THAT(logged, SizeIs(1));
  EXPECT_THAT(logged[0], Mentions("answer", "registration"));
}

TEST_F(NodeForming, EndsAtOnceWhenTheOtherSideWillNotHaveIt) {
  step(node_event::Tick{});
  const auto actions = step(node_event::Disconnected{"TLS refused: certificate revoked", Code::refused});
  const auto ended = all_of_kind<node_action::JobEnded>(actions);
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].failure->message, "TLS refused: certificate revoked");
  EXPECT_EQ(ended[0].failure->exit_code, exit_code_refused);
}

TEST(Numbered, WritesRanges) {
  EXPECT_EQ(numbered("rank", {4}), "rank 4");
  EXPECT_EQ(numbered("rank", {0, 1, 2, 5, 7, 8}), "ranks 0-2, 5, 7-8");
  std::vector<std::uint32_t> odd;
  for (std::uint32_t i = 0; i < 100; ++i) odd.push_back(2 * i + 1);
  EXPECT_EQ(numbered("server", odd), "servers 1, 3, 5, 7, 9, 11, 13, 15, ... (100 in all)");
}

// A launcher has seen a worker end with status 0.
TEST_F(Forming, FailsWhenAWorkerHasEndedThatNeverRegistered) {
  enter(1, "0");
  const auto actions = receive(9, message::EndedEarly{"2"}, 0);
  EXPECT_THAT(sent_to<message::Status>(9, actions), SizeIs(1))
      << "so that the launcher knows that it was heard";
  EXPECT_THAT(failure(), AllOf(HasSubstr("worker 2"), HasSubstr("muster.init()")));
}

TEST_F(Forming, GoesOnWhenAWorkerHasEndedThatHasRegistered) {
  enter(1, "0");
  receive(9, message::EndedEarly{"0"}, 0);
  EXPECT_EQ(failure(), "");
}

TEST_F(Forming, OnceFormedIsNotDisturbedByAWorkerThatHasEnded) {
  for (PeerId peer = 1; peer <= 4; ++peer) enter(peer, std::to_string(peer - 1));
  receive(9, message::EndedEarly{"2"}, 0);
  receive(10, message::EndedEarly{"7"}, 0);
  EXPECT_EQ(failure(), "");
}

}  // namespace
}  // namespace muster::cluster
