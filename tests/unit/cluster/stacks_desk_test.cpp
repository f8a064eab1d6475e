// Whom a scheduler asks for stacks, and what an observer hears of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "machines.h"

#include "muster/cluster/fingerprint.h"
#include "tests/unit/base/mentions.h"

namespace muster::cluster {
namespace {
namespace stacks_desk_test {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t job_id = 77;
constexpr PeerId observer = 900;

class Desk : public ::testing::Test {
 protected:
  SchedulerActions receive(PeerId peer, MessageBody body, std::uint64_t job = job_id) {
    return machine().step(scheduler_event::Received{peer, {job, job == 0 ? 0u : 1u, std::move(body)}},
                          clock.now());
  }
  void form(std::uint32_t worker_num, const std::string& last_version = own_version()) {
    made = std::make_unique<SchedulerMachine>(SchedulerConfig{.worker_num = worker_num,
                                                              .topo_timeout = 60s,
                                                              .node_timeout = 10s,
                                                              .job_id = job_id,
                                                              .pid = 1,
                                                              .process_space = "here"},
                                              clock.now());
    for (std::uint32_t rank = 0; rank < worker_num; ++rank)
      receive(
          rank + 1,
          message::Register{
              .member = {.node_id = std::to_string(rank), .address = "10.0.0.7", .pid = 50, .is_named = true},
              .worker_num = worker_num,
              .traits = {{"Muster's version", rank + 1 == worker_num ? last_version : own_version()}}},
          0);
  }
  // Of what was sent to the observer from now on.
  template <class Message>
  static std::vector<Message> heard(const SchedulerActions& actions) {
    return sent_to<Message>(observer, actions);
  }
  SchedulerActions pass(Duration time, std::uint32_t beating) {
    SchedulerActions all;
    for (const TimePoint end = clock.now() + time; clock.now() < end;) {
      clock.advance(100ms);
      for (PeerId peer = 1; peer <= beating; ++peer)
        std::ranges::move(receive(peer, said(peer)), std::back_inserter(all));
      std::ranges::move(machine().step(scheduler_event::Tick{}, clock.now()), std::back_inserter(all));
    }
    return all;
  }
  SchedulerMachine& machine() { return *made; }
  message::Beat said(PeerId peer) const {
    if (peer == busy) return {.step = 1, .activity = {.phase = WorkPhase::script, .finished = 1}};
    return {.activity = {.phase = WorkPhase::computing, .call = CallKind::all_reduce, .call_number = 1}};
  }

  PeerId busy = 0;  // the others wait for it
  ManualClock clock;
  std::unique_ptr<SchedulerMachine> made;
};

TEST_F(Desk, AsksAllAndTellsEachAsItAnswers) {
  form(2);
  auto actions = receive(observer, message::StacksRequest{}, 0);
  EXPECT_THAT(sent_to<message::AskStacks>(1, actions), SizeIs(1));
  EXPECT_THAT(sent_to<message::AskStacks>(2, actions), SizeIs(1));
  actions = receive(2, message::Stacks{"in train.py"});
  ASSERT_THAT(heard<message::ProcessStacks>(actions), SizeIs(1));
  EXPECT_EQ(heard<message::ProcessStacks>(actions)[0].rank, 1u);
  EXPECT_EQ(heard<message::ProcessStacks>(actions)[0].text, "in train.py");
  EXPECT_THAT(heard<message::StacksEnd>(actions), IsEmpty());
  actions = receive(1, message::Stacks{"in all_reduce"});
  EXPECT_THAT(heard<message::StacksEnd>(actions), SizeIs(1));
  EXPECT_THAT(all_of_kind<scheduler_action::Close>(actions), SizeIs(1));
}

TEST_F(Desk, AsksOneRankAlone) {
  form(3);
  auto actions = receive(observer, message::StacksRequest{.rank = 1}, 0);
  EXPECT_THAT(sent_to<message::AskStacks>(1, actions), IsEmpty());
  EXPECT_THAT(sent_to<message::AskStacks>(2, actions), SizeIs(1));
  EXPECT_THAT(heard<message::StacksEnd>(receive(2, message::Stacks{"here"})), SizeIs(1));
}

TEST_F(Desk, RefusesARankThatThereIsNotAndARoleThatThereIsNot) {
  form(3);
  auto refused = heard<message::Refuse>(receive(observer, message::StacksRequest{.rank = 3}, 0));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_EQ(refused[0].failure.message, "there is no worker 3 in this job: it has 0 to 2");
  refused =
      heard<message::Refuse>(receive(observer, message::StacksRequest{.role = Role::server, .rank = 0}, 0));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_EQ(refused[0].failure.message, "there is no server 0 in this job: it has none");
}

TEST_F(Desk, SaysWhoDoesNotAnswerInTime) {
  form(2);
  receive(observer, message::StacksRequest{}, 0);
  EXPECT_THAT(heard<message::ProcessStacks>(receive(1, message::Stacks{"here"})), SizeIs(1));
  const auto actions = pass(4s, 1);
  const auto told = heard<message::ProcessStacks>(actions);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].problem, Mentions("not answered", "3.5 s", "heartbeat", "stopped"));
  EXPECT_THAT(heard<message::StacksEnd>(actions), SizeIs(1));
}

TEST_F(Desk, SaysWhoWasLostAndWhoHasLeft) {
  form(3);
  receive(3, message::Leave{});
  receive(observer, message::StacksRequest{.rank = 1}, 0);
  auto told = heard<message::ProcessStacks>(machine().step(scheduler_event::Closed{2}, clock.now()));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].problem, HasSubstr("connection to the scheduler was lost"));
  told = sent_to<message::ProcessStacks>(observer + 1,
                                         receive(observer + 1, message::StacksRequest{.rank = 2}, 0));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].problem, "it has left the job");
}

TEST_F(Desk, DoesNotAskAProcessOfAnotherVersionWhichWouldEndItsConnection) {
  form(2, "0.0.1");
  const auto actions = receive(observer, message::StacksRequest{}, 0);
  EXPECT_THAT(sent_to<message::AskStacks>(2, actions), IsEmpty());
  ASSERT_THAT(heard<message::ProcessStacks>(actions), SizeIs(1));
  EXPECT_THAT(heard<message::ProcessStacks>(actions)[0].problem, Mentions("Muster 0.0.1", own_version()));
}

TEST_F(Desk, AsksThoseWhoWaitForNoneFirstWhereThereAreTooMany) {
  form(100);
  busy = 98;
  pass(100ms, 100);
  auto actions = receive(observer, message::StacksRequest{}, 0);
  EXPECT_THAT(sent_to<message::AskStacks>(98, actions), SizeIs(1));
  EXPECT_THAT(sent_to<message::AskStacks>(63, actions), SizeIs(1));
  EXPECT_THAT(sent_to<message::AskStacks>(64, actions), IsEmpty());
  actions = pass(4s, 100);
  ASSERT_THAT(heard<message::StacksEnd>(actions), SizeIs(1));
  EXPECT_EQ(heard<message::StacksEnd>(actions)[0].left_out, 36u);
}

TEST_F(Desk, LetsSixteenAskAtOnce) {
  form(1);
  for (PeerId each = observer; each < observer + 16; ++each)
    EXPECT_THAT(all_of_kind<scheduler_action::Close>(receive(each, message::StacksRequest{}, 0)), IsEmpty());
  const auto actions = receive(observer + 16, message::StacksRequest{}, 0);
  ASSERT_THAT(sent_to<message::Refuse>(observer + 16, actions), SizeIs(1));
  machine().step(scheduler_event::Closed{observer}, clock.now());
  EXPECT_THAT(sent_to<message::Refuse>(observer + 17, receive(observer + 17, message::StacksRequest{}, 0)),
              IsEmpty());
}

TEST_F(Desk, HasAllWorkersKeepTheirsWhenTheJobIsStuck) {
  form(2);
  busy = 2;
  std::vector<message::AskStacks> asked;
  for (const auto& share : all_of_kind<scheduler_action::Share>(pass(400s, 2)))
    if (const auto* ask = std::get_if<message::AskStacks>(&share.message->body)) asked.push_back(*ask);
  ASSERT_THAT(asked, SizeIs(::testing::Ge(2u)));
  EXPECT_FALSE(asked[0].is_answered);
}

}  // namespace stacks_desk_test
}  // namespace
}  // namespace muster::cluster
