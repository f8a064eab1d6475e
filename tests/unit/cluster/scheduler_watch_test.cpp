// Who waits for whom, and what observers of a scheduler hear.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "machines.h"
#include "muster/cluster/observers.h"
#include "muster/cluster/wire.h"
#include "tests/unit/base/mentions.h"

namespace muster::cluster {
namespace {
namespace scheduler_watch_test {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t job_id = 77;
constexpr std::uint64_t epoch = 4;
constexpr std::uint32_t worker_num = 4;

Activity at(WorkPhase phase) { return {.phase = phase}; }
Activity in(CallKind call, std::uint64_t number) {
  return {.phase = WorkPhase::computing, .call = call, .call_number = number};
}

class SchedulerWatch : public ::testing::Test {
 protected:
  SchedulerActions receive(PeerId peer, MessageBody body) {
    return machine.step(scheduler_event::Received{peer, {job_id, epoch, std::move(body)}}, clock.now());
  }
  SchedulerActions visit(PeerId peer, MessageBody body) {
    return machine.step(scheduler_event::Received{peer, {0, 0, std::move(body)}}, clock.now());
  }
  void enter(PeerId peer) {
    const message::Register request{{.node_id = std::to_string(peer - 1),
                                     .address = "10.0.0.7",
                                     .process_space = fmt::format("{}", peer)},
                                    worker_num,
                                    0};
    machine.step(scheduler_event::Received{peer, {0, 0, request}}, clock.now());
  }
  void form() {
    for (PeerId peer = 1; peer <= worker_num; ++peer) enter(peer);
  }
  // Beats of all for so long; what worker 0 is told meanwhile.
  std::vector<std::string> beat_for(Duration time) {
    std::vector<std::string> told;
    for (Duration passed{}; passed < time; passed += 200ms) {
      clock.advance(200ms);
      for (PeerId peer = 1; peer <= worker_num; ++peer) {
        if (peer == silent) continue;
        for (const auto& said :
             sent_to<message::Stuck>(1, receive(peer, message::Beat{step, {}, activities[peer - 1]})))
          told.push_back(said.text);
      }
      for (const auto& said : sent_to<message::Stuck>(1, machine.step(scheduler_event::Tick{}, clock.now())))
        told.push_back(said.text);
    }
    return told;
  }
  void make_steps(int count) {
    for (int i = 0; i < count; ++i) {
      ++step;
      EXPECT_THAT(beat_for(400ms), IsEmpty());
    }
  }

  ManualClock clock;
  SchedulerMachine machine{{.worker_num = worker_num,
                            .topo_timeout = 60s,
                            .node_timeout = 60s,
                            .job_id = job_id,
                            .epoch = epoch,
                            .pid = 1,
                            .process_space = "here"},
                           clock.now()};
  std::array<Activity, worker_num> activities = {};
  std::uint64_t step = no_step;
  PeerId silent = 0;
};

TEST_F(SchedulerWatch, SaysWhoWaitsForWhomWhenNoStepIsFinished) {
  form();
  step = 21;
  activities.fill(at(WorkPhase::computing));
  make_steps(20);
  activities.fill(in(CallKind::all_reduce, 18));
  activities[2] = at(WorkPhase::reading_data);
  const auto told = beat_for(11s);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], AllOf(Mentions("finished", "for 10"),
                             Mentions("rank 2", "loading", "step 41", "0, 1, 3", "all_reduce 18", "(worker 2",
                                      "'2'", "10.0.0.7")));
}

TEST_F(SchedulerWatch, SaysThatItGoesOn) {
  form();
  step = 1;
  activities.fill(at(WorkPhase::computing));
  make_steps(20);
  beat_for(12s);
  ++step;
  EXPECT_THAT(beat_for(1s), ElementsAre(Mentions("goes", "after 12")));
}

TEST_F(SchedulerWatch, SaysWhoGivesNoHeartbeatEither) {
  form();
  step = 1;
  activities.fill(at(WorkPhase::computing));
  make_steps(20);
  activities.fill(in(CallKind::all_reduce, 18));
  activities[3] = at(WorkPhase::computing);
  silent = 4;
  const auto told = beat_for(11s);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], Mentions("rank 3", "computing", "step 21", "for 10"));
}

TEST_F(SchedulerWatch, NamesParameterServersOnWhichWorkersWait) {
  SchedulerMachine with_server{{.worker_num = 2,
                                .server_num = 1,
                                .topo_timeout = 60s,
                                .node_timeout = 60s,
                                .job_id = job_id,
                                .epoch = epoch,
                                .pid = 1,
                                .process_space = "here"},
                               clock.now()};
  for (PeerId peer = 1; peer <= 3; ++peer) {
    message::Register request{
        {.node_id = peer < 3 ? std::to_string(peer - 1) : "server", .address = "10.0.0.7"}, 2, 1};
    if (peer == 3) request.member.role = Role::server;
    with_server.step(scheduler_event::Received{peer, {0, 0, request}}, clock.now());
  }
  std::vector<std::string> told;
  const auto beat = [&](bool is_stuck) {
    clock.advance(400ms);
    const std::uint32_t waiting = is_stuck ? 1 : 0;
    const Activity said[] = {{.phase = WorkPhase::computing, .awaited = {.first = 0, .count = waiting}},
                             at(is_stuck ? WorkPhase::script : WorkPhase::computing),
                             {.phase = WorkPhase::serving,
                              .awaited = {.first = 1, .count = 1},
                              .serving = {.rows = 7, .waiting = waiting}}};
    const auto hear = [&](const SchedulerActions& actions) {
      for (const auto& text : sent_to<message::Stuck>(1, actions)) told.push_back(text.text);
    };
    for (PeerId peer = 1; peer <= 3; ++peer)
      hear(with_server.step(
          scheduler_event::Received{peer, {job_id, epoch, message::Beat{step, {}, said[peer - 1]}}},
          clock.now()));
    hear(with_server.step(scheduler_event::Tick{}, clock.now()));
  };
  for (step = 1; step < 20; ++step) beat(false);
  for (int i = 0; i < 100 && told.empty(); ++i) beat(true);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], Mentions("rank 1: in the script", "rank 0: waiting for parameter server 0",
                                "server 0: serving 7 rows", "1 worker waits for rank 1"));
}

TEST_F(SchedulerWatch, NamesWhoIsBehindAmongThoseThatWait) {
  form();
  step = 1;
  activities.fill(at(WorkPhase::computing));
  make_steps(20);
  activities.fill(in(CallKind::all_reduce, 18));
  activities[1] = in(CallKind::barrier, 17);
  const auto told = beat_for(11s);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], EndsWith(": rank 1: in barrier 17; ranks 0, 2, 3: in all_reduce 18"));
}

TEST_F(SchedulerWatch, IsSilentWhileScriptsDoWhatIsNoStepAndNobodyWaits) {
  form();
  step = 1;
  activities.fill(at(WorkPhase::computing));
  make_steps(20);
  activities.fill(at(WorkPhase::script));
  EXPECT_THAT(beat_for(10min), IsEmpty());
}

TEST_F(SchedulerWatch, IsPatientWithAWorkerThatSaves) {
  form();
  step = 1;
  activities.fill(at(WorkPhase::computing));
  make_steps(20);
  activities.fill(in(CallKind::barrier, 18));
  activities[0] = at(WorkPhase::saving);
  EXPECT_THAT(beat_for(55s), IsEmpty());
  EXPECT_THAT(beat_for(10s), ElementsAre(HasSubstr("rank 0: saving")));
}

TEST_F(SchedulerWatch, GivesAVisitorTheStatusOfAClusterThatForms) {
  enter(3);
  clock.advance(2s);
  const auto actions = visit(9, message::StatusRequest{});
  const auto answers = sent_to<message::Status>(9, actions);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(all_of_kind<scheduler_action::Close>(actions).size(), 1u);
  const message::Status& status = answers[0];
  EXPECT_EQ(status.state, message::Status::State::forming);
  EXPECT_EQ(status.worker_num, worker_num);
  EXPECT_EQ(status.age, 2s);
  ASSERT_EQ(status.nodes.size(), 1u);
  EXPECT_EQ(status.nodes[0].node_id, "2");
  EXPECT_FALSE(status.nodes[0].has_rank);
  EXPECT_EQ(status.nodes[0].silence, 2s);
  EXPECT_THAT(status.text, HasSubstr("1 of 4"));
}

TEST_F(SchedulerWatch, GivesAVisitorTheLiveRosterInTheOrderOfTheRanks) {
  form();
  step = 41;
  activities.fill(at(WorkPhase::computing));
  activities[3].train_epoch = 2;
  beat_for(1s);
  receive(1, message::Leave{0, 42, ""});
  const auto answers = sent_to<message::Status>(9, visit(9, message::StatusRequest{}));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].state, message::Status::State::running);
  ASSERT_EQ(answers[0].nodes.size(), worker_num);
  for (std::uint32_t rank = 0; rank < worker_num; ++rank) {
    EXPECT_TRUE(answers[0].nodes[rank].has_rank);
    EXPECT_EQ(answers[0].nodes[rank].rank, rank);
    EXPECT_EQ(answers[0].nodes[rank].epoch, epoch);
    EXPECT_EQ(answers[0].nodes[rank].step, rank == 0 ? 42u : 41u);
    EXPECT_EQ(answers[0].nodes[rank].has_left, rank == 0);
  }
  EXPECT_EQ(answers[0].nodes[3].activity.train_epoch, 2u);
}

// However many ask, and whatever happens meanwhile.
TEST_F(SchedulerWatch, GivesAllWhoAskWithinAMomentTheSameWords) {
  const auto shared = [&](PeerId id) {
    const auto told = all_of_kind<scheduler_action::Share>(visit(id, message::StatusRequest{}));
    return told.empty() ? nullptr : told[0].message;
  };
  enter(3);
  const auto first = shared(9);
  ASSERT_NE(first, nullptr);
  enter(2);
  clock.advance(249ms);
  EXPECT_EQ(shared(10), first);
  clock.advance(1ms);
  const auto second = shared(11);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(std::get<message::Status>(second->body).nodes.size(), 2u);
}

TEST_F(SchedulerWatch, EchoesToAVisitorUntilItHasMeasuredEnough) {
  const message::Echo echo{5, 0, std::string(echo_limit_bytes, 'x')};
  std::size_t echoed = 0;
  while (true) {
    const auto actions = visit(9, echo);
    if (sent_to<message::Echo>(9, actions).empty()) {
      EXPECT_EQ(sent_to<message::Refuse>(9, actions).size(), 1u);
      break;
    }
    ASSERT_LT(echoed += echo.filling.size(), 2 * echo_budget_bytes);
  }
  EXPECT_GT(echoed, echo_budget_bytes / 2);
}

TEST_F(SchedulerWatch, BringsDoctorsTogether) {
  visit(8, message::MeetDoctors{{"alpha", "10.0.0.7", 40125}});
  const auto actions = visit(9, message::MeetDoctors{{"beta", "10.0.0.8", 40126}});
  for (const PeerId doctor : {PeerId{8}, PeerId{9}}) {
    const auto told = sent_to<message::Doctors>(doctor, actions);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].doctors.size(), 2u);
  }
  const auto left = machine.step(scheduler_event::Closed{8}, clock.now());
  const auto told = sent_to<message::Doctors>(9, left);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].doctors, (std::vector<message::Doctor>{{"beta", "10.0.0.8", 40126}}));
}

TEST_F(SchedulerWatch, KeepsNoDoctorWhoseConnectionItHasClosed) {
  for (PeerId id = 100; id < 100 + 2 * doctors_max; ++id) {
    visit(id, message::MeetDoctors{{"alpha", "10.0.0.7", 40125}});
    if (id % 2 == 0)
      visit(id, message::StatusRequest{});
    else
      visit(id, message::Leave{});  // which no observer says
  }
  const auto told = sent_to<message::Doctors>(9, visit(9, message::MeetDoctors{{"beta", "10.0.0.8", 40126}}));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].doctors.size(), 1u);
}

// Each word of theirs makes one to every doctor.
TEST_F(SchedulerWatch, TurnsAwayADoctorThatMeetsTheOthersTwice) {
  visit(8, message::MeetDoctors{{"alpha", "10.0.0.7", 40125}});
  visit(9, message::MeetDoctors{{"beta", "10.0.0.8", 40126}});
  const auto actions = visit(9, message::MeetDoctors{{"gamma", "10.0.0.8", 40126}});
  EXPECT_EQ(sent_to<message::Refuse>(9, actions).size(), 1u);
  EXPECT_EQ(sent_to<message::Doctors>(8, actions).size(), 1u) << "that it is gone";
}

TEST_F(SchedulerWatch, TurnsAwayMoreDoctorsThanItHasRoomFor) {
  for (PeerId id = 100; id < 100 + doctors_max; ++id)
    EXPECT_EQ(sent_to<message::Doctors>(id, visit(id, message::MeetDoctors{{"alpha", "10.0.0.7", 1}})).size(),
              1u);
  EXPECT_EQ(sent_to<message::Refuse>(9, visit(9, message::MeetDoctors{{"beta", "10.0.0.8", 2}})).size(), 1u);
}

TEST(Ranks, AreToldInAsFewWordsAsPossible) {
  EXPECT_EQ(ranks_text(std::array{2u}), "rank 2");
  EXPECT_EQ(ranks_text(std::array{0u, 1u, 3u}), "ranks 0, 1, 3");
  EXPECT_EQ(ranks_text(std::array{0u, 1u, 2u, 3u, 7u, 9u}), "ranks 0-3, 7, 9");
  std::vector<std::uint32_t> odd;
  for (std::uint32_t rank = 1; rank < 100; rank += 2) odd.push_back(rank);
  EXPECT_THAT(ranks_text(odd), EndsWith("31, and 34 more"));
}

}  // namespace scheduler_watch_test
}  // namespace
}  // namespace muster::cluster
