// A scheduler without its log: which job it is, is said by the processes that live, else by the points that
// they find. Whole jobs are in tests/sim/cluster.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

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

constexpr std::uint64_t lost_job = 0xabc;
constexpr std::uint64_t drawn_job = 77;
constexpr std::uint64_t adopted_epoch = 5000;

FoundJob found(std::uint64_t job_id = lost_job, std::uint64_t finished_calls = 0) {
  return {.job_id = job_id,
          .worker_num = 2,
          .seed = 9,
          .finished_calls = finished_calls,
          .ranks = {0, 1},
          .newest = "step 300 of call 0",
          .folder = fmt::format("/points/job-{:016x}", job_id)};
}

// Two workers on hosts of their own, and a scheduler that sees none of their processes.
class SchedulerWithoutLog : public ::testing::Test {
 protected:
  SchedulerConfig config() const {
    return {.worker_num = 2,
            .topo_timeout = 60s,
            .node_timeout = 10s,
            .job_id = drawn_job,
            .seed = 5,
            .process_space = "here",
            .recovers = true,
            .fresh = fresh,
            .adopted_epoch = adopted_epoch};
  }
  void SetUp() override { start(config()); }
  void start(const SchedulerConfig& next) {
    machine.emplace(next, clock.now());
    records.clear();
  }

  message::Register registration(std::uint32_t rank, std::uint64_t incarnation) const {
    return {.member = {.node_id = fmt::format("{}", rank),
                       .rank = rank,
                       .address = fmt::format("10.0.0.1{}", rank),
                       .process_space = fmt::format("{}", rank),
                       .incarnation = incarnation,
                       .is_named = true},
            .worker_num = 2,
            .recovers = true,
            .secret = {incarnation, 1}};
  }
  // A process that comes new and has found these jobs.
  SchedulerActions enter(PeerId peer, std::uint32_t rank, std::vector<FoundJob> jobs = {},
                         bool is_fresh = false) {
    auto request = registration(rank, 100 + peer);
    request.member.rank = 0;
    request.memory = {.fresh = is_fresh, .found = std::move(jobs)};
    return step(peer, {0, 0, request});
  }
  // One that is a member of the job whose log is lost.
  SchedulerActions survive(PeerId peer, std::uint32_t rank, std::uint64_t epoch = 3, bool epoch_lost = false,
                           std::uint64_t job_id = lost_job) {
    auto request = registration(rank, 200 + rank);
    request.epoch_lost = epoch_lost;
    request.memory = {.seed = 9, .finished_calls = 1, .finished_collectives = 4};
    return step(peer, {job_id, epoch, request});
  }
  // One that knows who is in that epoch.
  SchedulerActions survive_among(PeerId peer, std::uint32_t rank, std::uint64_t epoch,
                                 std::array<std::uint64_t, 2> incarnations) {
    auto request = registration(rank, incarnations[rank]);
    request.memory = {
        .seed = 9, .roster_epoch = epoch, .incarnations = {incarnations[rank], incarnations[1 - rank]}};
    return step(peer, {lost_job, epoch, request});
  }
  SchedulerActions say(PeerId peer, MessageBody body, std::uint64_t epoch) {
    return step(peer, {lost_job, epoch, std::move(body)});
  }
  SchedulerActions step(PeerId peer, Message message) {
    return keep(machine->step(scheduler_event::Received{peer, std::move(message)}, clock.now()));
  }
  // Time passes while these members of epoch 3 live.
  SchedulerActions pass(Duration time, const std::vector<PeerId>& alive) {
    SchedulerActions all;
    for (Duration passed = 0ms; passed < time; passed += 50ms) {
      clock.advance(50ms);
      for (const PeerId peer : alive)
        for (const auto& action : say(peer, message::Beat{}, 3)) all.push_back(action);
      for (const auto& action : keep(machine->step(scheduler_event::Tick{}, clock.now())))
        all.push_back(action);
    }
    return all;
  }
  void pass_forming(Duration time) {
    for (Duration passed = 0ms; passed < time; passed += 500ms) {
      clock.advance(500ms);
      for (const PeerId peer : {1, 2}) step(peer, {drawn_job, 1, message::Beat{}});
      keep(machine->step(scheduler_event::Tick{}, clock.now()));
    }
  }
  SchedulerActions keep(SchedulerActions actions) {
    for (const auto& action : all_of_kind<scheduler_action::Record>(actions))
      records.push_back(action.record);
    return actions;
  }
  SavedJob saved() const {
    SavedJob job;
    for (const Record& record : records) job.apply(record);
    return job;
  }
  std::string failure() const { return machine->failure() ? machine->failure()->message : "none"; }

  bool fresh = false;
  ManualClock clock;
  std::optional<SchedulerMachine> machine;
  std::vector<Record> records;
};

// --- everybody has died ------------------------------------------------------------------------------------

TEST_F(SchedulerWithoutLog, GoesOnWithTheJobWhosePointsItsWorkersHaveFound) {
  enter(1, 0, {found(lost_job, 3)});
  const auto rosters = sent_to<message::RosterReady>(1, enter(2, 1, {found(lost_job, 2)}));
  ASSERT_THAT(rosters, SizeIs(1));
  EXPECT_EQ(rosters[0].roster->job_id, lost_job);
  EXPECT_EQ(rosters[0].roster->seed, 9u);
  EXPECT_EQ(rosters[0].roster->epoch, adopted_epoch);
  EXPECT_EQ(rosters[0].roster->finished_calls, 2u) << "whose ends all have kept";
  EXPECT_EQ(saved().job.job_id, lost_job);
  EXPECT_TRUE(saved().is_unfinished());
  EXPECT_TRUE(saved().has_points);
}

TEST_F(SchedulerWithoutLog, TakesWorkersWithEmptyFoldersIntoAnAdoptedJob) {
  enter(1, 0);
  const auto rosters = sent_to<message::RosterReady>(1, enter(2, 1, {found(lost_job, 2)}));
  ASSERT_THAT(rosters, SizeIs(1));
  EXPECT_EQ(rosters[0].roster->job_id, lost_job);
  EXPECT_EQ(rosters[0].roster->finished_calls, 2u);
}

TEST_F(SchedulerWithoutLog, GivesAWorkerWithoutANodeIdTheRankOfThePointsOnItsHost) {
  const auto come = [&](PeerId peer, std::vector<std::uint32_t> ranks) {
    auto request = registration(0, 100 + peer);
    request.member.node_id = fmt::format("node-{}", peer);
    request.member.is_named = false;
    request.memory.found = {found()};
    request.memory.found[0].ranks = std::move(ranks);
    return step(peer, {0, 0, request});
  };
  come(1, {1});
  const auto rosters = sent_to<message::RosterReady>(2, come(2, {0}));
  ASSERT_THAT(rosters, SizeIs(1));
  EXPECT_EQ(rosters[0].roster->workers[0].node_id, "node-2");
  EXPECT_EQ(rosters[0].roster->workers[1].node_id, "node-1");
}

TEST_F(SchedulerWithoutLog, BeginsANewJobWhereNobodyHasFoundAny) {
  enter(1, 0);
  const auto rosters = sent_to<message::RosterReady>(1, enter(2, 1));
  ASSERT_THAT(rosters, SizeIs(1));
  EXPECT_EQ(rosters[0].roster->job_id, drawn_job);
  EXPECT_EQ(rosters[0].roster->epoch, 1u);
}

TEST_F(SchedulerWithoutLog, EndsForAllWhereWorkersHaveFoundDifferentJobs) {
  enter(1, 0, {found(0xaa)});
  const auto actions = enter(2, 1, {found(0xbb)});
  EXPECT_THAT(sent_to<message::Ended>(1, actions), SizeIs(1));
  EXPECT_THAT(failure(),
              AllOf(Mentions("2 workers", "newest", "step 300", "call 0", "/points/job-00000000000000aa"),
                    HasSubstr("job 00000000000000bb"), HasSubstr("10.0.0.11"),
                    HasSubstr("muster checkpoint rm"), HasSubstr("MUSTER_FRESH=1")));
  EXPECT_THAT(records, IsEmpty());
}

TEST_F(SchedulerWithoutLog, EndsForAllWhereTheFoundJobHasAnotherNumberOfWorkers) {
  FoundJob large = found();
  large.worker_num = 4;
  enter(1, 0);
  enter(2, 1, {large});
  EXPECT_THAT(failure(),
              AllOf(HasSubstr("of 4 workers"), HasSubstr("this job of 2 workers"), Mentions("1", "none")));
}

TEST_F(SchedulerWithoutLog, NeverTakesAJobOverWhoseProcessesLiveAndDoNotCome) {
  FoundJob in_use = found();
  in_use.is_in_use = true;
  enter(1, 0, {in_use});
  EXPECT_THAT(sent_to<message::RosterReady>(1, enter(2, 1, {found()})), IsEmpty());
  pass_forming(4s);
  EXPECT_EQ(failure(), "none") << "they may come";
  pass_forming(2s);
  EXPECT_THAT(failure(),
              AllOf(Mentions("live", "come"), HasSubstr("(in use)"), HasSubstr("MS_RECOVERY_PATH")));
  EXPECT_THAT(records, IsEmpty());
}

TEST_F(SchedulerWithoutLog, GoesOnWithTheProcessesWhoseFolderIsInUse) {
  FoundJob in_use = found();
  in_use.is_in_use = true;
  enter(1, 0, {in_use});
  enter(2, 1, {in_use});
  EXPECT_THAT(sent_to<message::Accept>(3, survive(3, 0)), SizeIs(1));
  EXPECT_EQ(failure(), "none");
}

TEST_F(SchedulerWithoutLog, WaitsForThoseWhoseFolderIsInUseAlsoWhereItWasStoppedItself) {
  FoundJob in_use = found();
  in_use.is_in_use = true;
  enter(1, 0, {in_use});
  enter(2, 1, {in_use});
  clock.advance(6s);
  keep(machine->step(scheduler_event::Tick{}, clock.now()));
  EXPECT_EQ(failure(), "none") << "what they say has not been read yet";
  EXPECT_THAT(sent_to<message::Accept>(3, survive(3, 0)), SizeIs(1));
}

TEST_F(SchedulerWithoutLog, TakesPointsOfTheJobThatEndedWellForDone) {
  SchedulerConfig next = config();
  next.ended_job_id = lost_job;
  start(next);
  enter(1, 0, {found()});
  const auto rosters = sent_to<message::RosterReady>(1, enter(2, 1, {found()}));
  ASSERT_THAT(rosters, SizeIs(1));
  EXPECT_EQ(rosters[0].roster->job_id, drawn_job);
}

// --- told to begin anew ------------------------------------------------------------------------------------

TEST_F(SchedulerWithoutLog, BeginsANewJobWhereEverybodyIsToldTo) {
  fresh = true;
  start(config());
  enter(1, 0, {found()}, true);
  EXPECT_THAT(records, IsEmpty()) << "the log of before stays until then";
  const auto rosters = sent_to<message::RosterReady>(1, enter(2, 1, {}, true));
  ASSERT_THAT(rosters, SizeIs(1));
  EXPECT_EQ(rosters[0].roster->job_id, drawn_job);
  EXPECT_EQ(saved().job.job_id, drawn_job);
}

TEST_F(SchedulerWithoutLog, SaysWhoIsNotToldToBeginAnew) {
  enter(1, 0, {found()}, true);
  enter(2, 1, {found()}, false);
  EXPECT_THAT(failure(),
              AllOf(HasSubstr("MUSTER_FRESH=1"), HasSubstr("not at the scheduler, "), HasSubstr("node '1'"),
                    Not(HasSubstr("node '0' at 10.0.0.10, pid 0),")), HasSubstr("/points/job-")));
}

TEST_F(SchedulerWithoutLog, NeverGivesUpAJobWhoseProcessesLive) {
  fresh = true;
  start(config());
  const auto actions = survive(1, 0);
  EXPECT_THAT(failure(),
              AllOf(HasSubstr("MUSTER_FRESH=1"), HasSubstr("0000000000000abc"), HasSubstr("epoch 3")));
  EXPECT_THAT(sent_to<message::Refuse>(1, actions), IsEmpty()) << "it would end by that";
  EXPECT_THAT(records, IsEmpty());
}

// --- some live ---------------------------------------------------------------------------------------------

TEST_F(SchedulerWithoutLog, KnowsAnEpochAgainWhoseProcessesAllLive) {
  EXPECT_THAT(sent_to<message::Accept>(1, survive(1, 0)), SizeIs(1));
  EXPECT_THAT(records, IsEmpty());
  const auto actions = survive(2, 1);
  for (const PeerId peer : {1, 2}) {
    EXPECT_THAT(sent_to<message::EpochLost>(peer, actions), IsEmpty()) << "nobody has to stop";
    EXPECT_THAT(sent_to<message::RosterReady>(peer, actions), IsEmpty());
  }
  EXPECT_THAT(sent_to<message::EpochLost>(1, pass(8s, {1, 2})), IsEmpty());
  ASSERT_TRUE(saved().is_unfinished());
  const Roster& roster = *saved().roster;
  EXPECT_EQ(roster.job_id, lost_job);
  EXPECT_EQ(roster.epoch, 3u);
  EXPECT_EQ(roster.seed, 9u);
  EXPECT_EQ(roster.finished_calls, 1u);
  EXPECT_EQ(roster.finished_collectives, 4u);
  EXPECT_EQ(roster.workers[1], registration(1, 201).member);
}

TEST_F(SchedulerWithoutLog, BeginsEpochsThatNoOtherSchedulerOfThatJobBegins) {
  survive(1, 0);
  survive(2, 1);
  for (const PeerId peer : {1, 2}) say(peer, message::LinkLost{"cut"}, 3);
  pass(400ms, {1, 2});
  say(1, message::Rejoin{{40, "there"}}, 3);
  const auto rosters = sent_to<message::RosterReady>(1, say(2, message::Rejoin{{41, "there"}}, 3));
  ASSERT_THAT(rosters, SizeIs(1));
  EXPECT_EQ(rosters[0].roster->epoch, adopted_epoch);
  EXPECT_EQ(saved().epoch_min, adopted_epoch) << "for the next life of it";
}

TEST_F(SchedulerWithoutLog, BeginsBehindTheEpochOfTheFoundFoldersWhereItsClockIsBehindThem) {
  FoundJob old = found();
  old.epoch = adopted_epoch + 70;
  enter(1, 0, {found()});
  const auto rosters = sent_to<message::RosterReady>(1, enter(2, 1, {old}));
  ASSERT_THAT(rosters, SizeIs(1));
  EXPECT_EQ(rosters[0].roster->epoch, adopted_epoch + 71);
}

TEST_F(SchedulerWithoutLog, GivesTheSeatOfADeadProcessToOneThatComesNew) {
  survive(1, 0);
  enter(2, 1);
  auto lost = pass(6s, {1});
  ASSERT_THAT(sent_to<message::EpochLost>(1, lost), Not(IsEmpty()));
  EXPECT_THAT(sent_to<message::Accept>(2, lost), SizeIs(1));
  const auto rosters = sent_to<message::RosterReady>(2, say(1, message::Rejoin{{40, "there"}}, 3));
  ASSERT_THAT(rosters, SizeIs(1));
  EXPECT_EQ(rosters[0].roster->epoch, adopted_epoch);
  EXPECT_EQ(rosters[0].roster->job_id, lost_job);
  EXPECT_EQ(rosters[0].roster->finished_calls, 1u);
}

TEST_F(SchedulerWithoutLog, GivesSeatsToThoseThatCameBeforeTheFirstSurvivor) {
  enter(1, 1);
  const auto adopted = survive(2, 0);
  EXPECT_THAT(sent_to<message::Waiting>(1, adopted), SizeIs(1));
  EXPECT_THAT(sent_to<message::Refuse>(1, say(1, message::Beat{}, 1)), IsEmpty());
  EXPECT_THAT(sent_to<message::Accept>(1, pass(6s, {2})), SizeIs(1));
  EXPECT_THAT(sent_to<message::RosterReady>(1, say(2, message::Rejoin{{40, "there"}}, 3)), SizeIs(1));
}

TEST_F(SchedulerWithoutLog, EndsForNobodyWhereOneWithPointsOfAnotherJobCameBeforeTheFirstSurvivor) {
  enter(1, 1, {found(0xdd)});
  const auto adopted = survive(2, 0);
  EXPECT_THAT(sent_to<message::Refuse>(1, adopted), SizeIs(1));
  EXPECT_THAT(sent_to<message::Accept>(2, adopted), SizeIs(1));
  EXPECT_EQ(failure(), "none");
}

TEST_F(SchedulerWithoutLog, GoesOnBehindTheNewestEpochThatAnySurvivorKnows) {
  survive(1, 0, 3);
  const auto lost = survive(2, 1, adopted_epoch + 4);
  for (const auto& send : all_of_kind<scheduler_action::Send>(lost))
    if (std::holds_alternative<message::EpochLost>(send.message.body)) {
      EXPECT_EQ(send.message.epoch, adopted_epoch + 4);
    }
  EXPECT_THAT(sent_to<message::EpochLost>(1, lost), SizeIs(1));
  EXPECT_THAT(sent_to<message::EpochLost>(2, lost), SizeIs(1));
  say(1, message::Rejoin{{40, "there"}}, adopted_epoch + 4);
  const auto rosters =
      sent_to<message::RosterReady>(1, say(2, message::Rejoin{{41, "there"}}, adopted_epoch + 4));
  ASSERT_THAT(rosters, SizeIs(1));
  EXPECT_EQ(rosters[0].roster->epoch, adopted_epoch + 5);
}

TEST_F(SchedulerWithoutLog, HearsFromASurvivorThatItsEpochIsLost) {
  survive(1, 0, 3, true);
  EXPECT_THAT(sent_to<message::EpochLost>(1, survive(2, 1)), SizeIs(0)) << "it was told at once";
  say(1, message::Rejoin{{40, "there"}}, 3);
  EXPECT_THAT(sent_to<message::RosterReady>(1, say(2, message::Rejoin{{41, "there"}}, 3)), SizeIs(1));
}

TEST_F(SchedulerWithoutLog, RefusesASurvivorOfAnotherJobThanTheFirst) {
  survive(1, 0);
  const auto refusals = sent_to<message::Refuse>(2, survive(2, 1, 3, false, 0xdef));
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].failure.message,
              AllOf(HasSubstr("0000000000000def"), HasSubstr("0000000000000abc")));
}

TEST_F(SchedulerWithoutLog, NotesWhoIsDoneBeforeAllAreKnownAgain) {
  survive(1, 0);
  EXPECT_THAT(sent_to<message::LeaveAck>(1, say(1, message::Leave{}, 3)), SizeIs(1));
  survive(2, 1);
  EXPECT_THAT(saved().left, ElementsAre(record::Left{Role::worker, 0}));
  const auto ended = say(2, message::Leave{}, 3);
  EXPECT_TRUE(saved().ended_well);
}

// Worker 1 was silent in epoch 3; epoch 4 began with another process in its place, and then the log was lost.
TEST_F(SchedulerWithoutLog, TakesNobodyBackWhoWasGivenUpInAnEpochThatOthersKnow) {
  survive_among(1, 0, 4, {200, 999});
  const auto refusals = sent_to<message::Refuse>(2, survive_among(2, 1, 3, {200, 201}));
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].failure.message, Mentions("taken", "epoch 4"));
  say(2, message::Leave{}, 3);
  say(1, message::Leave{}, 4);
  EXPECT_FALSE(saved().ended_well) << "worker 1 of epoch 4 was not done";
  EXPECT_THAT(sent_to<message::Accept>(3, survive_among(3, 1, 4, {200, 999})), SizeIs(1));
  say(3, message::Leave{}, 4);
  EXPECT_TRUE(saved().ended_well);
}

TEST_F(SchedulerWithoutLog, TakesTheSeatBackFromOneWhoWasGivenUp) {
  survive_among(2, 1, 3, {200, 201});
  const auto voided = survive_among(1, 0, 4, {200, 999});
  EXPECT_THAT(sent_to<message::Refuse>(2, voided), SizeIs(1));
  EXPECT_THAT(sent_to<message::EpochLost>(1, voided), SizeIs(1));
  EXPECT_THAT(sent_to<message::Accept>(3, survive_among(3, 1, 4, {200, 999})), SizeIs(1));
  say(1, message::Rejoin{{40, "there"}}, 4);
  const auto rosters = sent_to<message::RosterReady>(1, say(3, message::Rejoin{{41, "there"}}, 4));
  ASSERT_THAT(rosters, SizeIs(1));
  EXPECT_EQ(rosters[0].roster->workers[1].incarnation, 999u);
}

TEST_F(SchedulerWithoutLog, CountsNoGoodbyeOfAnEpochThatHasEnded) {
  survive_among(2, 1, 3, {200, 201});
  EXPECT_THAT(sent_to<message::LeaveAck>(2, say(2, message::Leave{}, 3)), SizeIs(1));
  survive_among(1, 0, 4, {200, 999});
  say(1, message::Leave{}, 4);
  EXPECT_FALSE(saved().ended_well) << "worker 1 of epoch 4 was not done";
  survive_among(3, 1, 4, {200, 999});
  say(3, message::Leave{}, 4);
  EXPECT_TRUE(saved().ended_well);
}

TEST_F(SchedulerWithoutLog, KeepsAMemberThatHasNotHeardOfItsNewestEpoch) {
  survive_among(2, 1, 3, {200, 201});
  const auto lost = survive_among(1, 0, 4, {200, 201});
  EXPECT_THAT(sent_to<message::Refuse>(2, lost), IsEmpty());
  EXPECT_THAT(sent_to<message::EpochLost>(2, lost), SizeIs(1));
  say(2, message::Leave{}, 3);
  say(1, message::Leave{}, 4);
  EXPECT_TRUE(saved().ended_well);
}

// --- points that are lost, or of others --------------------------------------------------------------------

class SchedulerOfAKnownJob : public SchedulerWithoutLog {
 protected:
  // Its log says so, and everybody else has died, or not.
  void restart(bool has_points, std::optional<Failure> failure = Failure{Code::peer_lost, "all died", 69}) {
    auto roster =
        std::make_shared<Roster>(Roster{.epoch = 3, .job_id = lost_job, .seed = 9, .recovers = true});
    std::vector<ProcessKey> keys;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const auto request = registration(rank, 200 + rank);
      roster->workers.push_back(request.member);
      keys.push_back(key_of(request.secret, request.member));
    }
    SchedulerConfig next = config();
    next.job_id = lost_job;
    next.saved = SavedJob{.job = {.job_id = lost_job, .seed = 9, .worker_num = 2},
                          .roster = roster,
                          .keys = keys,
                          .has_points = has_points,
                          .failure = std::move(failure)};
    start(next);
  }
};

TEST_F(SchedulerOfAKnownJob, IsAnErrorWhereAllPointsOfItAreGone) {
  restart(true);
  enter(1, 0);
  enter(2, 1);
  EXPECT_THAT(failure(), AllOf(HasSubstr("0000000000000abc"), HasSubstr("no worker has any"),
                               HasSubstr("10.0.0.10"), HasSubstr("MUSTER_FRESH=1")));
}

TEST_F(SchedulerOfAKnownJob, GoesOnWhereOneWorkerHasItsPoints) {
  restart(true);
  enter(1, 0);
  EXPECT_THAT(sent_to<message::RosterReady>(1, enter(2, 1, {found()})), SizeIs(1)) << failure();
}

TEST_F(SchedulerOfAKnownJob, BeginsAgainWhereNothingWasKept) {
  restart(false);
  enter(1, 0);
  EXPECT_THAT(sent_to<message::RosterReady>(1, enter(2, 1)), SizeIs(1)) << failure();
}

TEST_F(SchedulerOfAKnownJob, KeepsOnceThatThereArePoints) {
  restart(false);
  enter(1, 0);
  enter(2, 1);
  for (int i = 0; i < 3; ++i) say(1, message::Beat{1, {.has_point = true}}, 4);
  EXPECT_TRUE(saved().has_points);
  EXPECT_EQ(std::ranges::count(records, Record{record::Kept{}}), 1);
}

TEST_F(SchedulerOfAKnownJob, EndsForAllWhereTheFirstToComeHasPointsOfAnotherJob) {
  restart(true);
  const auto refusals = sent_to<message::Refuse>(1, enter(1, 0, {found(0xdd)}));
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].failure.message, AllOf(HasSubstr("00000000000000dd"), HasSubstr("0000000000000abc"),
                                                 HasSubstr("/points/job-"), HasSubstr("MUSTER_FRESH")));
  EXPECT_THAT(failure(), HasSubstr("00000000000000dd"));
}

TEST_F(SchedulerOfAKnownJob, TurnsAwayOneWithPointsOfAnotherJobFromOneThatLives) {
  restart(true);
  enter(1, 0, {found()});
  EXPECT_THAT(sent_to<message::Refuse>(2, enter(2, 1, {found(0xdd)})), SizeIs(1));
  EXPECT_EQ(failure(), "none");
  EXPECT_THAT(sent_to<message::RosterReady>(3, enter(3, 1, {found(), found(0xdd)})), SizeIs(1))
      << "who has points of this one too belongs here";
}

TEST_F(SchedulerOfAKnownJob, EndsForNobodyWhoMayLiveAndComeBack) {
  restart(true, std::nullopt);
  EXPECT_THAT(sent_to<message::Refuse>(1, enter(1, 0, {found(0xdd)})), SizeIs(1));
  EXPECT_EQ(failure(), "none") << "the members are on their way";
  EXPECT_THAT(sent_to<message::Accept>(2, survive(2, 0)), SizeIs(1));
}

}  // namespace
}  // namespace muster::cluster
