// Single steps of the state machines, where the simulator's runs would not show the difference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <numeric>

#include "machines.h"

#include "tests/unit/base/mentions.h"

namespace muster::cluster {
namespace {
namespace machines_test {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t job_id = 77;
constexpr std::uint64_t epoch = 4;

class Scheduler : public ::testing::Test {
 protected:
  SchedulerActions receive(PeerId peer, MessageBody body, std::uint64_t job = job_id,
                           std::uint64_t at_epoch = epoch) {
    return machine.step(scheduler_event::Received{peer, {job, at_epoch, std::move(body)}}, clock.now());
  }
  SchedulerActions enter(PeerId peer, const std::string& node_id) {
    return receive(peer, message::Register{{.node_id = node_id, .process_space = node_id}, 2, 0}, 0, 0);
  }
  SchedulerActions tick() { return machine.step(scheduler_event::Tick{}, clock.now()); }
  void form() {
    enter(1, "a");
    enter(2, "b");
  }

  ManualClock clock;
  SchedulerMachine machine{{.worker_num = 2,
                            .topo_timeout = 60s,
                            .node_timeout = 2s,
                            .job_id = job_id,
                            .epoch = epoch,
                            .seed = 5,
                            .pid = 1,
                            .process_space = "here"},
                           clock.now()};
};

TEST_F(Scheduler, RefusesAWorkerFromAnOlderEpoch) {
  const auto actions = receive(1, message::Register{{.node_id = "a"}, 2, 0}, job_id, epoch - 1);
  const auto refusals = sent_to<message::Refuse>(1, actions);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_THAT(refusals[0].failure.message, HasSubstr("epoch 3"));
  EXPECT_EQ(all_of_kind<scheduler_action::Close>(actions).size(), 1u);
}

TEST_F(Scheduler, RefusesANodeIdThatCouldNotBePrinted) {
  for (const std::string id : {"", "two words", "red\x1b[31m", "line\n"})
    EXPECT_EQ(sent_to<message::Refuse>(1, enter(1, id)).size(), 1u) << id;
}

TEST_F(Scheduler, RefusesAServerOfAJobWithoutServers) {
  const message::Register server{{.role = Role::server, .node_id = "s", .process_space = "s"}, 2, 0};
  const auto refusals = sent_to<message::Refuse>(1, receive(1, server, 0, 0));
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_THAT(refusals[0].failure.message, HasSubstr("MS_SERVER_NUM"));
  form();
  receive(1, message::Leave{});
  receive(2, message::Leave{});
  EXPECT_TRUE(machine.ended()) << "its workers are all";
}

TEST_F(Scheduler, RefusesWhoeverSpeaksBeforeRegistering) {
  const auto actions = receive(9, message::Leave{1, no_step, "me"});
  EXPECT_EQ(sent_to<message::Refuse>(9, actions).size(), 1u);
  EXPECT_EQ(all_of_kind<scheduler_action::Close>(actions).size(), 1u);
}

TEST_F(Scheduler, IsNotMovedByAStaleWord) {
  form();
  EXPECT_THAT(receive(1, message::Leave{1, no_step, "old"}, job_id, epoch - 1), IsEmpty());
  EXPECT_THAT(receive(1, message::Leave{1, no_step, "old"}, job_id + 1, epoch), IsEmpty());
  EXPECT_FALSE(machine.failure());
}

TEST_F(Scheduler, KeepsTheFirstReason) {
  form();
  receive(1, message::Leave{3, no_step, "first"});
  receive(2, message::Leave{4, no_step, "second"});
  machine.step(scheduler_event::Interrupted{}, clock.now());
  ASSERT_TRUE(machine.failure());
  EXPECT_THAT(machine.failure()->message, HasSubstr("first"));
  EXPECT_EQ(machine.failure()->exit_code, 3);
}

TEST_F(Scheduler, IsDueNoMoreOnceItHasEnded) {
  form();
  receive(1, message::Leave{});
  EXPECT_LT(machine.deadline(), TimePoint::max());
  receive(2, message::Leave{});
  ASSERT_TRUE(machine.ended());
  EXPECT_EQ(machine.deadline(), TimePoint::max()) << "its driver still lets its words arrive";
}

TEST_F(Scheduler, TellsWhoeverComesLateWhyTheJobEnded) {
  form();
  receive(1, message::Leave{3, no_step, "no more data"});
  const auto refusals = sent_to<message::Refuse>(5, enter(5, "late"));
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_THAT(refusals[0].failure.message, HasSubstr("no more data"));
}

TEST_F(Scheduler, BelievesAReportOfADeathOnlyFromTheSameProcessSpace) {
  form();
  receive(1, message::PeerGone{Role::worker, 1});  // "a" cannot see the processes of "b"
  clock.advance(1s);
  tick();
  EXPECT_FALSE(machine.failure());
}

TEST_F(Scheduler, SaysHowAProcessEndedWhereSomebodyKnows) {
  EXPECT_THAT(how_it_ended(std::nullopt), Mentions("killed", "crashed"));
  EXPECT_THAT(how_it_ended(3 << 8), Mentions("code 3", "word"));
  form();
  machine.step(scheduler_event::Exited{2, SIGKILL}, clock.now());
  machine.step(scheduler_event::Closed{2}, clock.now());
  ASSERT_TRUE(machine.failure());
  EXPECT_THAT(machine.failure()->message, Mentions("signal", "9 (KILL)"));
}

TEST_F(Scheduler, IgnoresAReportAboutARankThatIsNotThere) {
  form();
  receive(1, message::PeerGone{Role::worker, 2});
  receive(1, message::PeerGone{Role::server, 0});
  receive(1, message::PeerGone{Role::scheduler, 0});
  EXPECT_FALSE(machine.failure());
}

TEST_F(Scheduler, DoesNotBlameNodesForItsOwnPause) {
  form();
  clock.advance(10s);  // it was stopped itself; the heartbeats wait unread
  tick();
  EXPECT_FALSE(machine.failure());
  for (int i = 0; i < 25; ++i) {
    clock.advance(100ms);
    receive(1, message::Beat{});
    tick();
  }
  ASSERT_TRUE(machine.failure()) << "node b is silent";
  EXPECT_THAT(machine.failure()->message, HasSubstr("'b'"));
}

TEST_F(Scheduler, TakesNumbersAsRanksOnlyInTheirPlainForm) {
  enter(1, "00");
  const auto rosters = sent_to<message::RosterReady>(1, enter(2, "0"));
  ASSERT_EQ(rosters.size(), 1u);
  EXPECT_EQ(rosters[0].roster->workers[0].node_id, "0");
  EXPECT_EQ(rosters[0].roster->workers[1].node_id, "00");
}

class NodeSteps : public ::testing::Test {
 protected:
  NodeActions step(const NodeEvent& event) { return machine.step(event, {}, clock.now()); }
  NodeActions receive(MessageBody body, std::uint64_t job = job_id, std::uint64_t at_epoch = epoch) {
    return step(node_event::Received{{job, at_epoch, std::move(body)}});
  }
  NodeActions tick() { return step(node_event::Tick{}); }
  void connect() {
    tick();
    step(node_event::Connected{});
  }
  void form() {
    connect();
    receive(message::Accept{100ms, 1, "here"});
    auto roster = std::make_shared<Roster>();
    roster->workers = {{.node_id = "me"}};
    ASSERT_EQ(all_of_kind<node_action::Formed>(receive(message::RosterReady{roster})).size(), 1u);
  }

  ManualClock clock;
  NodeMachine machine{{.member = {.node_id = "me", .process_space = "here"},
                       .worker_num = 1,
                       .topo_timeout = 60s,
                       .retry_timeout = 30s,
                       .node_timeout = 2s,
                       .receive_timeout = 4s,
                       .scheduler = "host:8118"},
                      clock.now()};
};

TEST_F(NodeSteps, BeatTenTimesAsOftenWhileStepsTakeLonger) {
  form();
  NodeReport report{.stats = ProcessStats{}};
  const auto beats_of_a_second = [&] {
    std::size_t beats = 0;
    for (const TimePoint end = clock.now() + 1s; clock.now() < end; clock.advance(1ms)) {
      beats += sent<message::Beat>(machine.step(node_event::Tick{}, report, clock.now())).size();
      receive(message::Beat{});
    }
    return beats;
  };
  EXPECT_NEAR(static_cast<double>(beats_of_a_second()), 10, 1);
  report.is_slower = true;
  EXPECT_NEAR(static_cast<double>(beats_of_a_second()), 100, 10);
  report.is_slower = false;
  EXPECT_NEAR(static_cast<double>(beats_of_a_second()), 10, 1);
}

TEST_F(NodeSteps, TellEachStepMarkOnce) {
  form();
  std::vector<std::uint64_t> told;
  NodeReport report{.stats = ProcessStats{}};
  for (std::uint64_t step = 1; step <= 40; ++step) {
    report.stats->marks.push_back({step, {}});
    clock.advance(30ms);
    for (const message::Beat& beat :
         sent<message::Beat>(machine.step(node_event::Tick{}, report, clock.now())))
      for (const StepMark& mark : beat.stats->marks) told.push_back(mark.step);
  }
  std::vector<std::uint64_t> all(told.size());
  std::iota(all.begin(), all.end(), 1);
  EXPECT_EQ(told, all);
  EXPECT_GT(told.size(), 30u);
}

TEST_F(NodeSteps, TriesAtOnceThenAfterTenMillisecondsThenLessAndLessOften) {
  std::vector<Duration> pauses;
  TimePoint before = clock.now();
  for (int i = 0; i < 40; ++i) {
    while (all_of_kind<node_action::Connect>(tick()).empty())  // it may say something in between
      clock.advance(machine.deadline() - clock.now());
    if (i > 0) pauses.push_back(clock.now() - before);
    before = clock.now();
    step(node_event::Disconnected{"refused"});
  }
  EXPECT_EQ(pauses.front(), 10ms);
  EXPECT_TRUE(std::is_sorted(pauses.begin(), pauses.end()));
  EXPECT_EQ(pauses.back(), 1s);
}

TEST_F(NodeSteps, NamesPeerAndVariableWhenARegistrationIsNotAnswered) {
  connect();
  for (int i = 0; i < 39; ++i) {
    clock.advance(100ms);
    EXPECT_THAT(all_of_kind<node_action::JobEnded>(tick()), IsEmpty());
  }
  clock.advance(100ms);
  const auto ended = all_of_kind<node_action::JobEnded>(tick());
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_THAT(ended[0].failure->message, AllOf(HasSubstr("host:8118"), HasSubstr("MS_RECEIVE_MSG_TIMEOUT")));
  EXPECT_EQ(ended[0].failure->exit_code, exit_code_timeout);
}

TEST_F(NodeSteps, IsNotMovedByAStaleWord) {
  form();
  const Failure old{Code::aborted, "old", 1};
  EXPECT_THAT(all_of_kind<node_action::JobEnded>(receive(message::Ended{old}, job_id, epoch - 1)), IsEmpty());
  EXPECT_THAT(all_of_kind<node_action::JobEnded>(receive(message::Ended{old}, job_id + 1, epoch)), IsEmpty());
  EXPECT_EQ(all_of_kind<node_action::JobEnded>(receive(message::Ended{old})).size(), 1u);
}

TEST_F(NodeSteps, SaysTheEndOnce) {
  form();
  EXPECT_EQ(
      all_of_kind<node_action::JobEnded>(receive(message::Ended{Failure{Code::aborted, "why", 1}})).size(),
      1u);
  EXPECT_THAT(all_of_kind<node_action::JobEnded>(step(node_event::Disconnected{"closed"})), IsEmpty());
  EXPECT_THAT(all_of_kind<node_action::JobEnded>(step(node_event::Interrupted{})), IsEmpty());
  EXPECT_EQ(all_of_kind<node_action::Left>(step(node_event::Leave{1, ""})).size(), 1u)
      << "leaving is still answered";
}

TEST_F(NodeSteps, ReadsTheAnswerThatCameWhileItWasStopped) {
  connect();
  clock.advance(5s);
  EXPECT_THAT(all_of_kind<node_action::JobEnded>(tick()), IsEmpty()) << "nothing has been read yet";
  receive(message::Accept{100ms, 1, "here"});
  clock.advance(std::chrono::hours(1));
  EXPECT_THAT(all_of_kind<node_action::JobEnded>(tick()), IsEmpty());
  auto roster = std::make_shared<Roster>();
  roster->workers = {{.node_id = "me"}};
  EXPECT_EQ(all_of_kind<node_action::Formed>(receive(message::RosterReady{roster})).size(), 1u);
}

TEST_F(NodeSteps, LetsNobodyWaitWhoIsInterruptedAsTheJobEnds) {
  form();
  receive(message::Ended{});
  EXPECT_EQ(all_of_kind<node_action::Left>(step(node_event::Interrupted{})).size(), 1u);
}

TEST_F(NodeSteps, LeavesWithoutAnAnswerAfterTwoSeconds) {
  form();
  EXPECT_EQ(sent<message::Leave>(step(node_event::Leave{0, ""})).size(), 1u);
  for (int i = 0; i < 19; ++i) {
    clock.advance(100ms);
    EXPECT_THAT(all_of_kind<node_action::Left>(tick()), IsEmpty());
  }
  clock.advance(100ms);
  EXPECT_EQ(all_of_kind<node_action::Left>(tick()).size(), 1u);
}

TEST_F(NodeSteps, BelievesTheLastWordOfASchedulerWhoseProcessHasEnded) {
  form();
  step(node_event::Exited{Role::scheduler, 0});
  EXPECT_THAT(all_of_kind<node_action::JobEnded>(tick()), IsEmpty());
  const auto ended =
      all_of_kind<node_action::JobEnded>(receive(message::Ended{Failure{Code::aborted, "why", 3}}));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].failure->message, "why");
}

TEST_F(NodeSteps, SaysByWhichSignalTheSchedulerWasKilled) {
  form();
  step(node_event::Exited{Role::scheduler, 0, 0, SIGKILL});
  clock.advance(last_words_time);
  const auto ended = all_of_kind<node_action::JobEnded>(tick());
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_THAT(ended[0].failure->message, Mentions("signal", "9 (KILL)"));
}

TEST_F(NodeSteps, WatchesTheNextProcessesOfItsHost) {
  connect();
  auto roster = std::make_shared<Roster>();
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    const bool is_me = rank == 5;
    roster->workers.push_back({.node_id = is_me ? "me" : std::to_string(rank), .rank = rank});
    roster->workers.back().pid = static_cast<std::int32_t>(100 + rank);
    roster->workers.back().process_space = rank == 6 ? "elsewhere" : "here";
  }
  std::vector<std::uint32_t> watched;
  for (const auto& watch : all_of_kind<node_action::Watch>(receive(message::RosterReady{roster})))
    watched.push_back(watch.rank);
  EXPECT_THAT(watched, ::testing::ElementsAre(7, 0))
      << "two are enough: every death is seen by someone who lives";
}

}  // namespace machines_test
}  // namespace
}  // namespace muster::cluster
