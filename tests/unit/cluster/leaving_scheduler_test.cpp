// Who is done leaves the scheduler of a job that recovers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recovering_scheduler.h"

namespace muster::cluster {
namespace {

// What the scheduler answers to a worker that is done.
message::Beat asked_to_leave(const std::vector<message::Beat>& answers) {
  return answers.empty() ? message::Beat{} : answers.front();
}

class LeavingScheduler : public RecoveringScheduler {
 protected:
  message::Beat ask(PeerId peer, std::uint64_t kept, std::uint64_t epoch = 1) {
    return asked_to_leave(sent_to<message::Beat>(
        peer, receive(peer, {message::Beat{.progress = ends(kept), .leaves = true}}, epoch)));
  }
  message::Beat beat(PeerId peer, std::uint64_t kept, std::uint64_t epoch = 1) {
    return asked_to_leave(
        sent_to<message::Beat>(peer, receive(peer, message::Beat{.progress = ends(kept)}, epoch)));
  }
  // One call is over.
  static Progress ends(std::uint64_t kept) { return {.calls = 1, .kept_calls = kept}; }
};

const message::Beat may_leave{.leaves = true};
message::Beat waits_for(std::uint32_t rank) { return {.waits_for = rank}; }

TEST_F(LeavingScheduler, KeepsWhoIsDoneUntilTheOthersHaveKeptTheEnd) {
  form();
  EXPECT_EQ(ask(1, 1), waits_for(1)) << "which has not said that it has";
  EXPECT_EQ(beat(2, 0), message::Beat{});
  EXPECT_EQ(ask(1, 1), waits_for(1));
  beat(2, 1);
  EXPECT_EQ(ask(1, 1), may_leave);
}

TEST_F(LeavingScheduler, LetsWhoLacksTheEndGoFirst) {
  form();
  ask(1, 1);
  EXPECT_EQ(ask(2, 0), may_leave);
  EXPECT_EQ(ask(1, 1), waits_for(1)) << "it may be killed before it has left";
  receive(2, message::Leave{0, 9, ""});
  EXPECT_TRUE(ask(1, 1).leaves);
}

TEST_F(LeavingScheduler, LetsNobodyWhoLacksTheEndWaitForAnotherOneThatDoes) {
  form();
  EXPECT_EQ(ask(1, 0), waits_for(1)) << "whose script is not done";
  EXPECT_EQ(ask(2, 0), may_leave);
  EXPECT_EQ(ask(1, 0), may_leave);
}

TEST_F(LeavingScheduler, KeepsWhoIsDoneForOneThatComesBack) {
  form();
  beat(2, 0);
  close(2);
  pass(400ms, {1});
  EXPECT_EQ(ask(1, 1), waits_for(1)) << "its folder lacks the end, whoever comes next";
  enter(3, "1", 102);
  rejoin(1, 40, ends(1));
  EXPECT_EQ(recorded_epochs(), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(ask(1, 1, 2), waits_for(1));
  beat(3, 1, 2);
  EXPECT_EQ(ask(1, 1, 2), may_leave);
}

TEST_F(LeavingScheduler, KeepsWhoIsDoneForOneThatDiedBeforeItsFirstHeartbeat) {
  form();
  EXPECT_EQ(ask(1, 1), waits_for(1));
  close(2);
  pass(400ms, {1});
  EXPECT_EQ(ask(1, 1), waits_for(1));
}

TEST_F(LeavingScheduler, KeepsNobodyForADeadOneThatHadKeptTheEnd) {
  form();
  beat(2, 1);
  close(2);
  pass(400ms, {1});
  EXPECT_EQ(ask(1, 1), may_leave);
}

TEST_F(LeavingScheduler, NamesWhoHasLeftInTheMiddleOfTheEpoch) {
  form();
  EXPECT_EQ(beat(2, 1).left, std::nullopt);
  receive(1, message::Leave{0, 9, ""});
  EXPECT_EQ(beat(2, 1).left, 0u);
  close(2);
  pass(400ms, {});
  enter(3, "1", 102);
  ASSERT_EQ(recorded_epochs(), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(beat(3, 0, 2).left, std::nullopt) << "the roster says it";
}

}  // namespace
}  // namespace muster::cluster
