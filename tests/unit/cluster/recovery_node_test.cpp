// Single steps of a node in a job that recovers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machines.h"

#include "tests/unit/base/mentions.h"

namespace muster::cluster {
namespace {
namespace recovery_node_test {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t job_id = 77;

class RecoveringNode : public ::testing::Test {
 protected:
  NodeActions step(const NodeEvent& event) { return machine.step(event, {41, {3, 8}}, clock.now()); }
  NodeActions tick() { return step(node_event::Tick{}); }
  NodeActions receive(MessageBody body, std::uint64_t epoch = 1, std::uint64_t job = job_id) {
    return step(node_event::Received{{job, epoch, std::move(body)}});
  }
  static std::shared_ptr<const Roster> roster(std::uint64_t epoch) {
    auto made = std::make_shared<Roster>();
    made->epoch = epoch;
    made->recovers = true;
    made->seed = 5;
    made->finished_calls = 1;
    made->finished_collectives = 4;
    made->workers = {{.node_id = "me", .incarnation = 7}};
    return made;
  }
  void form() {
    tick();
    step(node_event::Connected{});
    receive(message::Accept{100ms, 1, "here"});
    ASSERT_THAT(all_of_kind<node_action::Formed>(receive(message::RosterReady{roster(1)})), SizeIs(1));
  }
  // The scheduler's connection is lost, and made again up to the registration.
  NodeActions reconnect() {
    clock.advance(machine.deadline() - clock.now());
    EXPECT_THAT(all_of_kind<node_action::Connect>(tick()), SizeIs(1));
    return step(node_event::Connected{});
  }

  ManualClock clock;
  NodeMachine machine{{.member = {.node_id = "me", .process_space = "here", .incarnation = 7},
                       .worker_num = 1,
                       .topo_timeout = 60s,
                       .retry_timeout = 30s,
                       .node_timeout = 10s,
                       .receive_timeout = 4s,
                       .scheduler = "host:8118",
                       .recovers = true},
                      clock.now()};
};

TEST_F(RecoveringNode, SaysWhereItIsReachedInTheNextEpochAndGoesThere) {
  form();
  const auto asked =
      all_of_kind<node_action::AskEndpoint>(receive(message::EpochLost{{Code::peer_lost, "x"}}));
  ASSERT_THAT(asked, SizeIs(1));
  const auto answer = sent<message::Rejoin>(step(node_event::Endpoint{DataEndpoint{99, "there"}}));
  EXPECT_THAT(answer, ElementsAre(message::Rejoin{{99, "there"}, {3, 8}}));
  EXPECT_THAT(all_of_kind<node_action::Formed>(receive(message::RosterReady{roster(2)}, 2)), SizeIs(1));
}

TEST_F(RecoveringNode, RepeatsItsAnswerAndAsksOnce) {
  form();
  receive(message::EpochLost{});
  EXPECT_THAT(all_of_kind<node_action::AskEndpoint>(receive(message::EpochLost{})), IsEmpty());
  step(node_event::Endpoint{DataEndpoint{99, "there"}});
  const auto again = receive(message::EpochLost{});
  EXPECT_THAT(all_of_kind<node_action::AskEndpoint>(again), IsEmpty());
  EXPECT_THAT(sent<message::Rejoin>(again), SizeIs(1));
}

TEST_F(RecoveringNode, IsNotMovedByWordsOfAnEpochThatIsOver) {
  form();
  receive(message::EpochLost{});
  step(node_event::Endpoint{DataEndpoint{99, "there"}});
  receive(message::RosterReady{roster(2)}, 2);
  EXPECT_THAT(all_of_kind<node_action::AskEndpoint>(receive(message::EpochLost{}, 1)), IsEmpty());
  EXPECT_THAT(all_of_kind<node_action::Formed>(receive(message::RosterReady{roster(1)}, 1)), IsEmpty());
  EXPECT_THAT(all_of_kind<node_action::Formed>(receive(message::RosterReady{roster(2)}, 2)), IsEmpty());
}

TEST_F(RecoveringNode, LooksForItsSchedulerForAsLongAsItLives) {
  form();
  step(node_event::Disconnected{"reset"});
  std::size_t warnings = 0;
  for (int i = 0; i < 4000; ++i) {
    clock.advance(machine.deadline() - clock.now());
    EXPECT_THAT(all_of_kind<node_action::JobEnded>(tick()), IsEmpty());
    warnings += all_of_kind<node_action::Log>(step(node_event::Disconnected{"refused"})).size();
  }
  EXPECT_GT(clock.now() - TimePoint{}, 1000s);
  EXPECT_GT(warnings, 30u);
  EXPECT_LT(warnings, 200u);
}

TEST_F(RecoveringNode, FindsARestartedSchedulerWithinATenthOfASecond) {
  form();
  step(node_event::Disconnected{"reset"});
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(machine.deadline() - clock.now(), 100ms);
    clock.advance(machine.deadline() - clock.now());
    tick();
    step(node_event::Disconnected{"refused"});
  }
}

TEST_F(RecoveringNode, ComesBackWithJobEpochAndWhatItKnows) {
  form();
  receive(message::EpochLost{});
  step(node_event::Disconnected{"reset"});
  step(node_event::Exited{Role::worker, 5, 50});
  const auto actions = reconnect();
  const auto sends = all_of_kind<node_action::Send>(actions);
  ASSERT_THAT(sends, SizeIs(1));
  EXPECT_EQ(sends[0].message.job_id, job_id);
  EXPECT_EQ(sends[0].message.epoch, 1u);
  EXPECT_TRUE(std::get<message::Register>(sends[0].message.body).epoch_lost);
  EXPECT_THAT(sent<message::PeerGone>(receive(message::Accept{100ms, 2, "here"})),
              ElementsAre(message::PeerGone{Role::worker, 5, 50}));
}

TEST_F(RecoveringNode, NamesSoManyMembersOfALargeJobThatItsRegistrationStaysSmall) {
  form();
  auto next = std::make_shared<Roster>(*roster(2));
  const std::size_t count = members_told_max + 10;
  for (std::uint32_t rank = 0; rank < count; ++rank)
    next->workers.push_back({.rank = rank, .incarnation = 1000 + rank});
  next->workers.erase(next->workers.begin());
  next->workers[20].incarnation = 7;
  receive(message::EpochLost{});
  receive(message::RosterReady{next}, 2);
  step(node_event::Disconnected{"reset"});
  const auto requests = sent<message::Register>(reconnect());
  ASSERT_THAT(requests, SizeIs(1));
  const auto& told = requests[0].memory.incarnations;
  ASSERT_THAT(told, SizeIs(members_told_max));
  EXPECT_EQ(told.front(), 7u);
  EXPECT_EQ(told.back(), 1000 + (20 + members_told_max - 1) % count);
}

TEST_F(RecoveringNode, WaitsNoLongerForASchedulerWhoseHostDoesNotAnswer) {
  form();
  receive(message::EpochLost{});
  const TimePoint lost = clock.now();
  step(node_event::Disconnected{"reset"});
  while (!machine.ended() && clock.now() < lost + 60s) {
    clock.advance(machine.deadline() - clock.now());
    tick();  // and no attempt to connect ends by itself
  }
  EXPECT_TRUE(machine.ended());
  EXPECT_EQ(clock.now() - lost, 10s) << "MS_NODE_TIMEOUT";
}

TEST_F(RecoveringNode, TellsOfItsRosterToASchedulerThatMayHaveLostItsLog) {
  form();
  step(node_event::Disconnected{"reset"});
  const auto requests = sent<message::Register>(reconnect());
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_EQ(requests[0].memory, (MembershipReport{.seed = 5,
                                                  .finished_calls = 1,
                                                  .finished_collectives = 4,
                                                  .roster_epoch = 1,
                                                  .incarnations = {7}}));
}

TEST_F(RecoveringNode, NamesTheMembersOfItsRosterAfterItsEpochWasLostInAnother) {
  form();
  auto next = std::make_shared<Roster>(*roster(2));
  next->workers = {{.node_id = "a", .incarnation = 5},
                   {.node_id = "me", .rank = 1, .incarnation = 7},
                   {.node_id = "c", .rank = 2, .incarnation = 6}};
  next->servers = {{.role = Role::server, .node_id = "s", .incarnation = 8}};
  receive(message::EpochLost{});
  receive(message::RosterReady{next}, 2);
  receive(message::EpochLost{}, 9);
  step(node_event::Disconnected{"reset"});
  const auto requests = sent<message::Register>(reconnect());
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_EQ(requests[0].memory.roster_epoch, 2u);
  EXPECT_THAT(requests[0].memory.incarnations, ElementsAre(7, 6, 8, 5)) << "round from its own";
}

TEST_F(RecoveringNode, GoesOnWhenASchedulerRefusesItThatKnowsLessThanItself) {
  form();
  receive(message::EpochLost{}, 3);
  step(node_event::Disconnected{"reset"});
  reconnect();
  const auto actions = receive(message::Refuse{{Code::refused, "it belongs to epoch 3", 77}}, 2);
  EXPECT_THAT(all_of_kind<node_action::JobEnded>(actions), IsEmpty());
  EXPECT_THAT(all_of_kind<node_action::Disconnect>(actions), SizeIs(1));
  EXPECT_FALSE(machine.ended());
  EXPECT_THAT(sent<message::Register>(reconnect()), SizeIs(1)) << "it looks for the other one";
}

TEST_F(RecoveringNode, TellsAtOnceThatItHasAPoint) {
  form();
  clock.advance(10ms);
  EXPECT_THAT(sent<message::Beat>(tick()), IsEmpty());
  const NodeReport report{.step = 1, .progress = {.has_point = true}};
  const auto beats = sent<message::Beat>(machine.step(node_event::Tick{}, report, clock.now()));
  ASSERT_THAT(beats, SizeIs(1));
  EXPECT_TRUE(beats[0].progress.has_point);
  EXPECT_THAT(sent<message::Beat>(machine.step(node_event::Tick{}, report, clock.now())), IsEmpty());
}

TEST_F(RecoveringNode, FollowsASchedulerThatFindsOutWhichJobItIs) {
  tick();
  step(node_event::Connected{});
  receive(message::Accept{100ms, 2, "here"}, 1, 55);
  receive(message::Waiting{"for a place"}, 9, job_id);
  clock.advance(200ms);
  const auto sends = all_of_kind<node_action::Send>(tick());
  ASSERT_THAT(sends, SizeIs(1));
  EXPECT_EQ(sends[0].message.job_id, job_id);
  EXPECT_THAT(all_of_kind<node_action::Formed>(receive(message::RosterReady{roster(10)}, 10)), SizeIs(1));
}

TEST_F(RecoveringNode, EndsWhenItIsFenced) {
  form();
  step(node_event::Disconnected{"reset"});
  reconnect();
  const auto ended = all_of_kind<node_action::JobEnded>(
      receive(message::Refuse{{Code::refused, "its place was taken", exit_code_refused}}, 5, 1234));
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].failure->exit_code, exit_code_refused);
}

TEST_F(RecoveringNode, WaitsForASchedulerThatItNeedsNoLongerThanTheNodeTimeout) {
  form();
  step(node_event::Disconnected{"reset"});
  step(node_event::LinkLost{1, "cut"});
  std::optional<Failure> failure;
  while (!failure) {
    ASSERT_LT(clock.now(), TimePoint{} + 11s);
    clock.advance(machine.deadline() - clock.now());
    for (const auto& ended : all_of_kind<node_action::JobEnded>(tick())) failure = ended.failure;
    if (!failure) step(node_event::Disconnected{"refused"});
  }
  EXPECT_GE(clock.now(), TimePoint{} + 10s);
  EXPECT_THAT(failure->message, AllOf(HasSubstr("MS_NODE_TIMEOUT"), HasSubstr("last step was 41")));
}

TEST_F(RecoveringNode, DoesNotCountItsOwnPauseAgainstTheScheduler) {
  form();
  step(node_event::Disconnected{"reset"});
  step(node_event::LinkLost{1, "cut"});
  clock.advance(60s);  // it was stopped
  EXPECT_THAT(all_of_kind<node_action::JobEnded>(tick()), IsEmpty());
}

TEST_F(RecoveringNode, TellsASchedulerThatComesBackOfItsLinks) {
  form();
  step(node_event::Disconnected{"reset"});
  step(node_event::LinkLost{1, "cut"});
  reconnect();
  EXPECT_THAT(sent<message::LinkLost>(receive(message::Accept{100ms, 2, "here"})),
              ElementsAre(message::LinkLost{"cut"}));
}

TEST_F(RecoveringNode, AnswersByItselfWhereItIsAServer) {
  machine = NodeMachine({.member = {.role = Role::server, .node_id = "me", .data_port = 5, .incarnation = 7},
                         .topo_timeout = 60s,
                         .retry_timeout = 30s,
                         .node_timeout = 10s,
                         .receive_timeout = 4s,
                         .recovers = true},
                        clock.now());
  tick();
  step(node_event::Connected{});
  receive(message::Accept{100ms, 1, "here"});
  auto roster = std::make_shared<Roster>();
  roster->servers = {{.role = Role::server, .node_id = "me", .incarnation = 7}};
  receive(message::RosterReady{roster});
  const auto actions = receive(message::EpochLost{});
  EXPECT_THAT(all_of_kind<node_action::AskEndpoint>(actions), IsEmpty());
  EXPECT_THAT(sent<message::Rejoin>(actions), ElementsAre(message::Rejoin{{5, ""}, {3, 8}}));
}

TEST_F(RecoveringNode, SaysGoodbyeToASchedulerThatComesBack) {
  form();
  step(node_event::Disconnected{"reset"});
  EXPECT_THAT(all_of_kind<node_action::Left>(step(node_event::Leave{0, ""})), IsEmpty());
  reconnect();
  const auto asked = receive(message::Accept{100ms, 2, "here"});
  EXPECT_THAT(sent<message::Beat>(asked), ElementsAre(message::Beat{41, {3, 8}, {}, true}));
  const auto goodbye = receive(message::Beat{.leaves = true});
  EXPECT_THAT(sent<message::Leave>(goodbye), SizeIs(1));
  EXPECT_THAT(sent<message::Beat>(goodbye), ElementsAre(message::Beat{41, {3, 8}})) << "others rely on it";
  EXPECT_THAT(all_of_kind<node_action::Left>(receive(message::LeaveAck{})), SizeIs(1));
}

TEST_F(RecoveringNode, AsksWhetherItMayLeaveUntilNobodyNeedsIt) {
  form();
  const auto asked = step(node_event::Leave{0, ""});
  EXPECT_THAT(sent<message::Beat>(asked), ElementsAre(message::Beat{41, {3, 8}, {}, true}));
  EXPECT_THAT(sent<message::Leave>(asked), IsEmpty());
  EXPECT_THAT(sent<message::Leave>(receive(message::Beat{})), IsEmpty()) << "the answer to an earlier beat";
  const auto told = all_of_kind<node_action::Log>(receive(message::Beat{.waits_for = 3}));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].text, Mentions("worker 3", "still"));
  EXPECT_LE(machine.deadline() - clock.now(), 10ms);
  clock.advance(machine.deadline() - clock.now());
  EXPECT_THAT(sent<message::Beat>(tick()), SizeIs(1));
  EXPECT_THAT(receive(message::Beat{.waits_for = 3}), IsEmpty()) << "it has been said";
  EXPECT_THAT(sent<message::Leave>(receive(message::Beat{.leaves = true})), SizeIs(1));
}

TEST_F(RecoveringNode, GoesToTheNextEpochWhileItAsks) {
  form();
  step(node_event::Leave{0, ""});
  EXPECT_THAT(all_of_kind<node_action::AskEndpoint>(receive(message::EpochLost{})), SizeIs(1));
  EXPECT_THAT(sent<message::Rejoin>(step(node_event::Endpoint{DataEndpoint{99, "there"}})), SizeIs(1));
  EXPECT_THAT(all_of_kind<node_action::Formed>(receive(message::RosterReady{roster(2)}, 2)), SizeIs(1));
  EXPECT_THAT(sent<message::Leave>(receive(message::Beat{.leaves = true}, 2)), SizeIs(1));
}

TEST_F(RecoveringNode, LeavesInTheEndWhoeverNeedsIt) {
  form();
  const TimePoint begin = clock.now();
  NodeActions actions = step(node_event::Leave{0, ""});
  while (sent<message::Leave>(actions).empty()) {
    receive(message::Beat{.waits_for = 0});
    clock.advance(machine.deadline() - clock.now());
    actions = tick();
  }
  EXPECT_EQ(clock.now() - begin, 10s);
}

TEST_F(RecoveringNode, AsksNobodyWhereItHasFailed) {
  form();
  EXPECT_THAT(sent<message::Leave>(step(node_event::Leave{3, "a mistake"})), SizeIs(1));
}

TEST_F(RecoveringNode, TellsWhoHasLeftItsEpoch) {
  form();
  EXPECT_THAT(all_of_kind<node_action::PeerLeft>(receive(message::Beat{.left = 2}, 2)), IsEmpty());
  const auto told = all_of_kind<node_action::PeerLeft>(receive(message::Beat{.left = 2}));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].epoch, 1u);
  EXPECT_EQ(told[0].rank, 2u);
}

TEST_F(RecoveringNode, EndsWhenItCannotListenAgain) {
  form();
  receive(message::EpochLost{});
  const auto actions = step(node_event::Endpoint{fail(Code::io, "no free port")});
  const auto ended = all_of_kind<node_action::JobEnded>(actions);
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].failure->message, "no free port");
  EXPECT_THAT(sent<message::Leave>(actions), SizeIs(1));
}

TEST_F(RecoveringNode, TakesNoRefusalOfAnEarlierEpoch) {
  form();
  receive(message::RosterReady{roster(2)}, 2);
  const message::Refuse refusal{{Code::refused, "a newer one took its place", exit_code_refused}};
  EXPECT_THAT(all_of_kind<node_action::JobEnded>(receive(refusal, 1)), IsEmpty());
  EXPECT_THAT(all_of_kind<node_action::JobEnded>(receive(refusal, 2)), SizeIs(1));
}

// --- its place -------------------------------------------------------------------------------------------

TEST_F(RecoveringNode, EndsWithoutAWordWhereAnotherProcessHasItsPlace) {
  form();
  step(node_event::Disconnected{"reset"});
  const auto actions = step(node_event::Replaced{"a newer incarnation has its folder"});
  const auto ended = all_of_kind<node_action::JobEnded>(actions);
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].failure,
            (Failure{Code::refused, "a newer incarnation has its folder", exit_code_refused}));
  EXPECT_TRUE(machine.ended());
}

TEST_F(RecoveringNode, IsNotDoneWhereAnotherProcessHasItsPlace) {
  form();
  step(node_event::Disconnected{"reset"});
  step(node_event::Leave{0, ""});
  const auto actions = step(node_event::Replaced{"a newer incarnation has its folder"});
  EXPECT_THAT(all_of_kind<node_action::JobEnded>(actions), SizeIs(1));
  EXPECT_THAT(all_of_kind<node_action::Left>(actions), SizeIs(1));
  EXPECT_THAT(sent<message::Leave>(actions), IsEmpty());
}

TEST_F(RecoveringNode, SaysWhatItFindsWheneverItComesNew) {
  tick();
  step(node_event::Connected{});
  step(node_event::Disconnected{"reset"});
  clock.advance(machine.deadline() - clock.now());
  tick();
  const std::vector<FoundJob> found{{.job_id = 5, .worker_num = 1}};
  const auto requests = sent<message::Register>(step(node_event::Connected{found}));
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_EQ(requests[0].memory, (MembershipReport{.found = found}));
}

}  // namespace recovery_node_test
}  // namespace
}  // namespace muster::cluster
