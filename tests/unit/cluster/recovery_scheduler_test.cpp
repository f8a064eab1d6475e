// Single steps of the scheduler of a job that recovers; whole jobs are in
// tests/sim/cluster/recovery_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "recovering_scheduler.h"

#include "tests/unit/base/mentions.h"

namespace muster::cluster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Whoever says so first, and though none of them is a step that was not made before.
TEST_F(RecoveringScheduler, KnowsWhatAStepTakesFromThoseThatAreMadeAgainBetweenTwoHeartbeats) {
  form();
  const Activity blocked{.phase = WorkPhase::computing, .call = CallKind::all_reduce, .call_number = 7};
  Activity again = blocked;
  again.finished = 3;  // calls of the new group
  for (std::uint64_t step = 1; step <= 20; ++step) {
    clock.advance(200ms);
    for (const PeerId peer : {1, 2}) receive(peer, message::Beat{step, {}, blocked});
  }
  close(2);
  clock.advance(400ms);
  receive(1, message::Beat{20, {}, blocked});
  tick();
  rejoin(1, 40);
  enter(3, "1", 102);
  for (const PeerId peer : {1, 3}) receive(peer, message::Beat{20, {}, again}, 2);
  std::size_t told = 0;
  for (Duration passed = 0ms; passed < 11s; passed += 200ms) {
    clock.advance(200ms);
    for (const PeerId peer : {1, 3})
      told += sent_to<message::Stuck>(1, receive(peer, message::Beat{20, {}, again}, 2)).size();
  }
  EXPECT_EQ(told, 1u);
}

TEST_F(RecoveringScheduler, NamesAProcessThatComesBackAndDiffers) {
  lose_second();
  rejoin(1, 40);
  traits = {{"script", "bb"}};
  const auto actions = enter(3, "1", 102);
  EXPECT_THAT(
      sent_to<message::Waiting>(1, actions),
      ElementsAre(message::Waiting{"the processes of this job differ: script is 'aa' at rank 0, 'bb' at "
                                   "rank 1"}));
  EXPECT_THAT(sent_to<message::RosterReady>(3, actions), SizeIs(1));
}

TEST_F(RecoveringScheduler, TurnsAwayAProcessThatComesBackToAStrictJobAndDiffers) {
  strict = true;
  lose_second();
  rejoin(1, 40);
  traits = {{"script", "bb"}};
  const auto refusals = sent_to<message::Refuse>(3, enter(3, "1", 102));
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].failure.message,
              AllOf(Mentions("differs", "(MUSTER_STRICT=1)"), HasSubstr("'bb' at this process"),
                    HasSubstr("'aa' at rank 0")));
  EXPECT_FALSE(machine->failure()) << "the right one may still come";
  traits = {{"script", "aa"}};
  EXPECT_THAT(sent_to<message::RosterReady>(4, enter(4, "1", 103)), SizeIs(1));
}

TEST_F(RecoveringScheduler, SaysThatSomebodyAtTheAddressOfAMissingNodeWasTurnedAway) {
  form();
  machine->step(scheduler_event::Rejected{.address = "10.0.0.11", .reason = "of before"}, clock.now());
  clock.advance(100ms);
  close(2);
  pass(400ms, {1});
  EXPECT_EQ(told_of({.address = "10.0.0.9", .reason = "of elsewhere"}), "nothing");
  EXPECT_THAT(told_of({.address = "10.0.0.11", .reason = "certificate revoked"}),
              AllOf(HasSubstr("waiting for node 1"), Not(HasSubstr("of elsewhere")),
                    Not(HasSubstr("of before")), Mentions("node 1", "10.0.0.11", "turned", "0 s")));
  EXPECT_EQ(told_of({.address = "10.0.0.11", .reason = "certificate revoked"}), "nothing") << "no news";
}

TEST_F(RecoveringScheduler, SaysThatAMissingNodesCertificateWasRefused) {
  lose_second();
  EXPECT_THAT(told_of({.address = "10.0.0.99",
                       .reason = "certificate revoked",
                       .claims = Member{.node_id = "1", .address = "10.0.0.99"}}),
              Mentions("node 1", "0 s", "10.0.0.99", "revoked"));
}

TEST_F(RecoveringScheduler, TellsThoseWhoWaitAtOnceWhyAMissingNodeWasRefused) {
  lose_second();
  auto request = registration("1", 200, true);
  request.worker_num = 3;
  const auto said = sent_to<message::Waiting>(1, ask(3, request));
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_THAT(said[0].text, Mentions("waiting for node 1", "node 1 was refused", "MS_WORKER_NUM is 3 there"));
}

TEST_F(RecoveringScheduler, SaysThatAMissingNodeMayHaveComeUnderAnothersId) {
  lose_second();
  auto request = registration("0", 200, true);
  request.member.address = "10.0.0.11";
  ask(3, request);
  const auto said = sent_to<message::Waiting>(1, pass(2s, {1}));  // the one that it might replace lives
  ASSERT_THAT(said, Not(IsEmpty()));
  EXPECT_THAT(said.back().text,
              Mentions("node 1, or another worker", "10.0.0.11", "as node '0'", "duplicate"));
}

TEST_F(RecoveringScheduler, SaysThatItRemembersNoJobWhereItWasStartedWithoutRecovery) {
  SchedulerConfig told = config();
  told.recovers = false;
  machine.emplace(told, clock.now());
  const auto refusals = sent_to<message::Refuse>(1, come_back(1, "0", 100, 3));
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].failure.message, Mentions("epoch 3", "MS_ENABLE_RECOVERY=1", "MS_RECOVERY_PATH"));
}

TEST_F(RecoveringScheduler, RecordsAnEpochBeforeItTellsAnybody) {
  enter(1, "0", 100);
  const auto actions = enter(2, "1", 101);
  std::size_t recorded = actions.size();
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (std::holds_alternative<scheduler_action::Record>(actions[i])) recorded = i;
    const auto* share = std::get_if<scheduler_action::Share>(&actions[i]);
    if (share != nullptr && std::holds_alternative<message::RosterReady>(share->message->body)) {
      EXPECT_LT(recorded, i);
    }
  }
  EXPECT_LT(recorded, actions.size());
}

TEST_F(RecoveringScheduler, RecordsAGoodbyeBeforeItAnswers) {
  form();
  const auto actions = receive(1, message::Leave{0, 7, ""});
  ASSERT_FALSE(actions.empty());
  EXPECT_TRUE(std::holds_alternative<scheduler_action::Record>(actions.front()));
  EXPECT_THAT(sent_to<message::LeaveAck>(1, actions), SizeIs(1));
}

TEST_F(RecoveringScheduler, WaitsAMomentForABrokenConnectionThatItCannotExplain) {
  form();
  close(2);
  EXPECT_THAT(sent_to<message::EpochLost>(1, pass(250ms, {1})), IsEmpty());
  come_back(3, "1", 101);
  EXPECT_THAT(sent_to<message::EpochLost>(1, pass(1s, {1, 3})), IsEmpty());
  EXPECT_THAT(recorded_epochs(), ElementsAre(1));
}

// Worker "1" is a process of the scheduler's own host, worker "0" another one of that.
class SchedulerOfItsHost : public RecoveringScheduler {
 protected:
  void form_here() {
    for (std::uint32_t i = 0; i < 2; ++i) enter_here(1 + i, std::to_string(i), 100 + i);
    ASSERT_THAT(recorded_epochs(), ElementsAre(1));
  }
  void enter_here(PeerId peer, const std::string& id, std::uint64_t incarnation) {
    auto request = registration(id, incarnation, true);
    request.member.process_space = "here";
    request.member.pid = static_cast<std::int32_t>(incarnation);
    keep(machine->step(scheduler_event::Received{peer, {0, 0, request}}, clock.now()));
  }
};

TEST_F(SchedulerOfItsHost, WaitsForTheConnectionOfAProcessThatItSeesAlive) {
  form_here();
  close(2);
  EXPECT_THAT(sent_to<message::EpochLost>(1, pass(5s, {1})), IsEmpty());
  machine->step(scheduler_event::Exited{2}, clock.now());
  EXPECT_THAT(sent_to<message::EpochLost>(1, pass(600ms, {1})), ::testing::Not(IsEmpty()));
}

TEST_F(SchedulerOfItsHost, DoesNotTakeTheDeathOfAnOlderProcessForThatOfTheNewOne) {
  form_here();
  receive(1, message::PeerGone{Role::worker, 1, 101});
  pass(1500ms, {1});
  enter_here(3, "1", 200);
  rejoin(1, 777);
  ASSERT_THAT(recorded_epochs(), ElementsAre(1, 2));
  receive(1, message::PeerGone{Role::worker, 1, 101}, 2);  // seen by somebody else, later
  EXPECT_THAT(sent_to<message::EpochLost>(1, pass(1s, {1, 3})), IsEmpty());
  receive(1, message::PeerGone{Role::worker, 1, 200}, 2);
  EXPECT_THAT(sent_to<message::EpochLost>(1, pass(1500ms, {1})), Not(IsEmpty()));
}

TEST_F(SchedulerOfItsHost, BelievesTheConnectionOfAProcessMoreThanWhoSaysThatItHasEnded) {
  form_here();
  for (int i = 0; i < 5; ++i) {
    receive(1, message::PeerGone{Role::worker, 1, 101, SIGKILL});
    EXPECT_THAT(sent_to<message::EpochLost>(1, pass(2s, {1, 2})), IsEmpty()) << "it speaks";
  }
  receive(1, message::PeerGone{Role::worker, 1, 101, SIGKILL});
  const auto actions = close(2);
  ASSERT_THAT(sent_to<message::EpochLost>(1, actions), SizeIs(1)) << "at once";
  EXPECT_THAT(sent_to<message::EpochLost>(1, actions)[0].reason.message, HasSubstr("killed by signal 9"));
}

TEST_F(RecoveringScheduler, BeginsTheNextEpochOnceTheNewProcessAndTheSurvivorAreThere) {
  lose_second();
  EXPECT_THAT(sent_to<message::RosterReady>(1, enter(3, "1", 200)), IsEmpty()) << "worker 0 has not moved";
  const auto rosters = sent_to<message::RosterReady>(3, rejoin(1, 777, {2, 30}));
  ASSERT_THAT(rosters, SizeIs(1));
  const Roster& roster = *rosters[0].roster;
  EXPECT_EQ(roster.epoch, 2u);
  EXPECT_EQ(roster.workers[0].data_port, 777);
  EXPECT_EQ(roster.workers[0].local_name, "there");
  EXPECT_EQ(roster.workers[1].incarnation, 200u);
  EXPECT_EQ(roster.finished_calls, 2u);
  EXPECT_EQ(roster.finished_collectives, 30u);
  EXPECT_THAT(recorded_epochs(), ElementsAre(1, 2));
}

TEST_F(RecoveringScheduler, TakesNoAnswerThatIsMeantForAnOlderEpoch) {
  lose_second();
  enter(3, "1", 200);
  rejoin(1, 777, {}, 0);
  EXPECT_THAT(recorded_epochs(), ElementsAre(1));
}

TEST_F(RecoveringScheduler, TakesANewerProcessInThePlaceOfOneThatSaysNothing) {
  form();
  enter(3, "1", 200);
  const auto actions = pass(2s, {1});
  const auto refusals = sent_to<message::Refuse>(2, actions);
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].failure.message, Mentions("newer", "took"));
  EXPECT_EQ(refusals[0].failure.exit_code, exit_code_refused);
  EXPECT_THAT(sent_to<message::EpochLost>(1, actions), ::testing::Not(IsEmpty()));
  rejoin(1, 777);
  EXPECT_THAT(recorded_epochs(), ElementsAre(1, 2));
}

TEST_F(RecoveringScheduler, RefusesTheFencedDuplicateWhateverItSays) {
  form();
  enter(3, "1", 200);
  pass(2s, {1});
  rejoin(1, 777);
  for (const MessageBody& body :
       {MessageBody(message::Beat{}), MessageBody(message::Leave{0, 9, ""}), MessageBody(message::PeerGone{}),
        MessageBody(message::Rejoin{}), MessageBody(message::LinkLost{"cut"})}) {
    const auto actions = receive(2, body);
    EXPECT_THAT(sent_to<message::Refuse>(2, actions), SizeIs(1));
    EXPECT_THAT(all_of_kind<scheduler_action::Close>(actions), SizeIs(1));
    EXPECT_THAT(all_of_kind<scheduler_action::Record>(actions), IsEmpty()) << "it changes nothing";
  }
  const auto again = sent_to<message::Refuse>(4, come_back(4, "1", 101));
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_THAT(again[0].failure.message,
              AllOf(HasSubstr("its place was taken"), HasSubstr("this is epoch 2")));
}

TEST_F(RecoveringScheduler, RefusesTheFencedDuplicateAlsoWhenThePlaceIsVacantAgain) {
  lose_second();
  enter(3, "1", 200);
  rejoin(1, 777);
  close(3);
  pass(400ms, {1});
  EXPECT_THAT(sent_to<message::Refuse>(4, come_back(4, "1", 101)), SizeIs(1));
  EXPECT_THAT(sent_to<message::Accept>(5, come_back(5, "1", 200, 2)), SizeIs(1)) << "its own is its own";
}

TEST_F(RecoveringScheduler, KeepsALiveProcessInItsPlace) {
  form();
  enter(3, "1", 200);
  const auto actions = pass(2s, {1, 2});
  const auto refusals = sent_to<message::Refuse>(3, actions);
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].failure.message, HasSubstr("taken by a live worker"));
  EXPECT_THAT(sent_to<message::EpochLost>(1, actions), IsEmpty());
}

TEST_F(RecoveringScheduler, TakesNoDuplicateBecauseItWasStoppedItself) {
  form();
  enter(3, "1", 200);
  clock.advance(30s);
  tick();  // what worker 1 said meanwhile was not read yet
  EXPECT_THAT(sent_to<message::Refuse>(3, pass(1s, {1, 2})), SizeIs(1));
  EXPECT_THAT(recorded_epochs(), ElementsAre(1));
}

TEST_F(RecoveringScheduler, DoesNotLoseItsPatienceWhileItIsStoppedItself) {
  lose_second();
  clock.advance(30s);
  tick();
  EXPECT_FALSE(machine->failure()) << "whoever came meanwhile was not heard yet";
  enter(3, "1", 200);
  rejoin(1, 777);
  EXPECT_THAT(recorded_epochs(), ElementsAre(1, 2));
}

TEST_F(RecoveringScheduler, IgnoresTheDeathOfAProcessThatSatThereBefore) {
  lose_second();
  enter(3, "1", 200);
  rejoin(1, 777);
  receive(3, message::Beat{}, 2);
  machine->step(scheduler_event::Exited{2}, clock.now());
  receive(1, message::PeerGone{Role::worker, 1, 101}, 2);
  EXPECT_THAT(sent_to<message::EpochLost>(1, pass(1s, {1, 3})), IsEmpty());
}

TEST_F(RecoveringScheduler, FailsWithTheTextOfItsWaitingWhenTimeIsOver) {
  form();
  receive(2, message::Beat{812});
  close(2);
  std::vector<std::string> told;
  for (const auto& waiting : sent_to<message::Waiting>(1, pass(9s, {1}))) told.push_back(waiting.text);
  const std::string text =
      "cluster epoch 2: waiting for node 1 (its connection was lost at step 812) - start it again with "
      "MS_NODE_ID=1";
  EXPECT_THAT(told, ElementsAre(text));
  pass(2s, {1});
  ASSERT_TRUE(machine->failure());
  EXPECT_EQ(machine->failure()->message, "no process came within 10 s (MS_NODE_TIMEOUT): " + text);
}

TEST_F(RecoveringScheduler, BeginsANewEpochOfAllWhenOneHasLostItsLinks) {
  form();
  receive(1, message::LinkLost{"reset by peer"});
  EXPECT_THAT(sent_to<message::EpochLost>(2, pass(200ms, {1, 2})), IsEmpty()) << "a death may explain it";
  const auto lost = sent_to<message::EpochLost>(2, pass(200ms, {1, 2}));
  ASSERT_THAT(lost, SizeIs(1));
  EXPECT_THAT(lost[0].reason.message, HasSubstr("reset by peer"));
  rejoin(1, 777);
  rejoin(2, 778);
  EXPECT_THAT(recorded_epochs(), ElementsAre(1, 2));
  receive(1, message::LinkLost{"late"}, 1);
  EXPECT_THAT(sent_to<message::EpochLost>(2, pass(1s, {1, 2})), IsEmpty()) << "of an epoch that is over";
}

TEST_F(RecoveringScheduler, GivesUpLinksThatBreakAgainAndAgainWithoutAStep) {
  form();
  for (std::uint64_t epoch = 1; epoch <= 11 && !machine->failure(); ++epoch) {
    receive(1, message::LinkLost{"reset by peer"}, epoch);
    pass(400ms, {});
    rejoin(1, 777, {}, epoch);
    rejoin(2, 778, {}, epoch);
  }
  ASSERT_TRUE(machine->failure());
  EXPECT_THAT(machine->failure()->message, AllOf(HasSubstr("11 times"), HasSubstr("reset by peer")));
}

TEST_F(RecoveringScheduler, TellsAgainWhoDidNotHear) {
  lose_second();
  EXPECT_THAT(sent_to<message::EpochLost>(1, pass(1200ms, {1})), ::testing::Not(IsEmpty()));
  enter(3, "1", 200);
  rejoin(1, 777);
  EXPECT_THAT(sent_to<message::RosterReady>(1, pass(600ms, {1})), ::testing::Not(IsEmpty()))
      << "it still speaks of epoch 1";
}

TEST_F(RecoveringScheduler, ForgetsADeathBeforeTheFirstRoster) {
  enter(1, "0", 100);
  close(1);
  pass(400ms, {});
  EXPECT_FALSE(machine->failure());
  enter(2, "0", 200);
  const auto rosters = sent_to<message::RosterReady>(3, enter(3, "1", 101));
  ASSERT_THAT(rosters, SizeIs(1));
  EXPECT_EQ(rosters[0].roster->workers[0].incarnation, 200u);
}

TEST_F(RecoveringScheduler, RefusesAProcessWithoutRecovery) {
  message::Register request = registration("0", 100, true);
  request.recovers = false;
  const auto refusals =
      sent_to<message::Refuse>(1, machine->step(scheduler_event::Received{1, {0, 0, request}}, clock.now()));
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].failure.message, Mentions("MS_ENABLE_RECOVERY", "0 there", "and 1", "scheduler"));
}

TEST_F(RecoveringScheduler, EndsByAFailureUnlessFailedProcessesAreStartedAgain) {
  form();
  receive(2, message::Leave{3, 5, "a mistake"});
  EXPECT_TRUE(machine->failure());
  restarts_failed = true;
  SetUp();
  form();
  const auto actions = receive(2, message::Leave{3, 5, "a mistake"});
  EXPECT_FALSE(machine->failure());
  const auto waiting = sent_to<message::Waiting>(1, actions);
  ASSERT_THAT(waiting, SizeIs(1));
  EXPECT_THAT(waiting[0].text, Mentions("node 1", "mistake", "5"));
}

// --- after its own death -----------------------------------------------------------------------------------

class RestartedScheduler : public RecoveringScheduler {
 protected:
  // Dies after these have formed epoch 1, and is started again.
  void restart() {
    SavedJob saved{.job = {.job_id = job_id, .seed = 5, .worker_num = 2}};
    for (const Record& record : records) saved.apply(record);
    SchedulerConfig next = config();
    next.saved = saved;
    machine.emplace(next, clock.now());
    tick();
  }
};

TEST_F(RestartedScheduler, TakesItsNodesBackInTheSameEpoch) {
  form();
  restart();
  EXPECT_THAT(sent_to<message::Accept>(11, come_back(11, "0", 100)), SizeIs(1));
  EXPECT_THAT(sent_to<message::Accept>(12, come_back(12, "1", 101)), SizeIs(1));
  EXPECT_THAT(sent_to<message::EpochLost>(11, pass(6s, {11, 12})), IsEmpty());
  EXPECT_THAT(recorded_epochs(), ElementsAre(1));
}

TEST_F(RestartedScheduler, GivesItsNodesTheTimeBackInWhichItWasStoppedItself) {
  form();
  restart();
  clock.advance(6s);
  come_back(11, "0", 100);
  EXPECT_THAT(sent_to<message::EpochLost>(11, pass(4900ms, {11})), IsEmpty());
  EXPECT_THAT(sent_to<message::EpochLost>(11, pass(300ms, {11})), SizeIs(1));
}

TEST_F(RestartedScheduler, CountsTheSilenceOfItsNodesFromItsOwnStart) {
  form();
  clock.advance(std::chrono::hours(1));
  restart();
  clock.advance(200ms);
  const auto told = sent_to<message::Status>(
      13, machine->step(scheduler_event::Received{13, {0, 0, message::StatusRequest{}}}, clock.now()));
  ASSERT_THAT(told, SizeIs(1));
  ASSERT_THAT(told[0].nodes, SizeIs(2));
  EXPECT_EQ(told[0].nodes[0].silence, 200ms);
}

TEST_F(RestartedScheduler, NoticesWhoDoesNotComeBack) {
  form();
  restart();
  come_back(11, "0", 100);
  EXPECT_THAT(sent_to<message::EpochLost>(11, pass(4900ms, {11})), IsEmpty());
  EXPECT_THAT(sent_to<message::EpochLost>(11, pass(300ms, {11})), SizeIs(1));
}

TEST_F(RestartedScheduler, SeesAtOnceWhichProcessesOfItsHostHaveEnded) {
  auto roster = std::make_shared<Roster>();
  roster->epoch = 1;
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    roster->workers.push_back({.node_id = std::to_string(rank),
                               .rank = rank,
                               .pid = static_cast<std::int32_t>(40 + rank),
                               .process_space = rank == 0 ? "elsewhere" : "here",
                               .incarnation = 100 + rank});
  std::vector<ProcessKey> keys;
  for (const Member& member : roster->workers) keys.push_back(key_of({member.incarnation, 1}, member));
  records = {record::Job{.job_id = job_id, .worker_num = 2}, record::Formed{roster, keys}};
  SchedulerConfig next = config();
  next.saved.emplace();
  for (const Record& record : records) next.saved->apply(record);
  machine.emplace(next, clock.now());
  const auto watched = all_of_kind<scheduler_action::Watch>(tick());
  ASSERT_THAT(watched, SizeIs(1));
  EXPECT_EQ(watched[0].pid, 41);
  come_back(11, "0", 100);
  const auto actions = machine->step(scheduler_event::Exited{watched[0].peer}, clock.now());
  EXPECT_THAT(sent_to<message::EpochLost>(11, actions), SizeIs(1));
}

TEST_F(RestartedScheduler, HearsFromANodeThatItsEpochWasLost) {
  lose_second();
  restart();
  EXPECT_THAT(sent_to<message::EpochLost>(11, come_back(11, "0", 100, 1, true)), SizeIs(1));
}

TEST_F(RestartedScheduler, GivesTheRosterToWhoMissedIt) {
  form();
  restart();
  EXPECT_THAT(sent_to<message::RosterReady>(11, enter(11, "0", 100)), SizeIs(1));
}

TEST_F(RestartedScheduler, WaitsForAllAfterAJobThatFailed) {
  form();
  receive(2, message::Leave{3, 5, "a mistake"});
  restart();
  enter(11, "0", 300);
  const auto rosters = sent_to<message::RosterReady>(11, enter(12, "1", 301));
  ASSERT_THAT(rosters, SizeIs(1));
  EXPECT_EQ(rosters[0].roster->epoch, 2u);
  EXPECT_EQ(rosters[0].roster->job_id, job_id);
}

TEST_F(RestartedScheduler, DoesNotWaitForWhoWasDone) {
  form();
  receive(1, message::Leave{0, 9, ""});
  restart();
  come_back(12, "1", 101);
  receive(12, message::Leave{0, 9, ""});
  tick();
  EXPECT_THAT(records.back(), ::testing::VariantWith<record::Ended>(record::Ended{}));
}

TEST_F(RestartedScheduler, TellsWhoWasDoneThatItsJobHasEndedWhenTheNextHasBegun) {
  SchedulerConfig next = config();
  next.job_id = 78;
  next.ended_job_id = job_id;
  machine.emplace(next, clock.now());
  EXPECT_THAT(sent_to<message::Ended>(11, come_back(11, "0", 100)), ElementsAre(message::Ended{}));
}

TEST_F(RestartedScheduler, RefusesANodeFromAnEpochThatItsLogDoesNotHave) {
  form();
  restart();
  const auto refusals = sent_to<message::Refuse>(11, come_back(11, "0", 100, 9));
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].failure.message, AllOf(HasSubstr("epoch 9"), HasSubstr("MS_RECOVERY_PATH")));
}

// --- leaving -----------------------------------------------------------------------------------------------

}  // namespace
}  // namespace muster::cluster
