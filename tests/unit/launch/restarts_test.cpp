#include "muster/launch/restarts.h"

#include <gtest/gtest.h>

#include <csignal>

#include "muster/cluster/cluster.h"
#include "tests/unit/base/mentions.h"

namespace muster::launch {
namespace {

using std::chrono::seconds;

constexpr int exited_with(int code) { return code << 8; }
const std::string killed = "was killed by signal 9 (Killed)";

Restarts restarts(std::size_t max) { return {max, seconds(1), seconds(5)}; }

TEST(Restarts, AreAtOnceAndThenWaitLongerAndLonger) {
  Restarts policy = restarts(100);
  std::vector<std::optional<Duration>> delays;
  for (const char* failure : {"a", "b", "c", "d", "e", "f"})
    delays.push_back(policy.after({failure, "", "step 100"}));
  EXPECT_EQ(delays, (std::vector<std::optional<Duration>>{seconds(0), seconds(1), seconds(2), seconds(4),
                                                          seconds(5), seconds(5)}));
  EXPECT_EQ(policy.after({"g", "", "step 200"}), seconds(0)) << "the job got on";
  EXPECT_EQ(policy.restarts(), 7u);
}

TEST(Restarts, EndWithTheThirdSameFailureInOnePlace) {
  Restarts policy = restarts(100);
  EXPECT_TRUE(policy.after({killed, "", "step 100"}));
  EXPECT_TRUE(policy.after({killed, "", "step 100"}));
  EXPECT_TRUE(policy.after({killed, "", "step 200"})) << "elsewhere";
  EXPECT_TRUE(policy.after({"exited with code 1", "", "step 200"})) << "another one";
  EXPECT_TRUE(policy.after({killed, "", "step 200"}));
  EXPECT_TRUE(policy.after({killed, "", "step 200"}));
  EXPECT_FALSE(policy.after({killed, "", "step 200"}));
  EXPECT_THAT(policy.refusal(), Mentions("3 times", "between"));
}

TEST(Restarts, EndWithTheThirdSameFailureAtOneStepAndNotBefore) {
  Restarts policy = restarts(100);
  for (const char* step : {"behind step 70", "behind step 65", "", "behind step 63", "behind step 65"})
    EXPECT_TRUE(policy.after({killed, step, "step 60"})) << step;
  EXPECT_TRUE(policy.after({killed, "behind step 65", "step 60"}));
  EXPECT_FALSE(policy.after({killed, "behind step 65", "step 60"}));
  EXPECT_THAT(policy.refusal(), Mentions("3 times", "behind", "step 65"));
}

TEST(Restarts, EndWithTheThirdSameFailureAtOneStepWhateverPointsAreWrittenMeanwhile) {
  Restarts policy = restarts(100);
  EXPECT_EQ(policy.after({killed, "behind step 70", "step 40"}), seconds(0));
  EXPECT_EQ(policy.after({killed, "behind step 70", "step 60"}), seconds(1)) << "a slow save came later";
  EXPECT_FALSE(policy.after({killed, "behind step 70", "step 60"}));
  EXPECT_THAT(policy.refusal(), Mentions("3 times", "behind", "step 70"));
}

TEST(Restarts, AreAtOnceAgainWhenTheJobGotOnToAnotherFailure) {
  Restarts policy = restarts(100);
  EXPECT_EQ(policy.after({killed, "behind step 70", "step 60"}), seconds(0));
  EXPECT_EQ(policy.after({killed, "behind step 70", "step 60"}), seconds(1));
  EXPECT_EQ(policy.after({killed, "behind step 90", "step 80"}), seconds(0));
}

TEST(Restarts, EndWhenNoneIsLeft) {
  Restarts policy = restarts(1);
  EXPECT_TRUE(policy.after({killed, "", "step 100"}));
  EXPECT_FALSE(policy.after({killed, "", "step 200"}));
  EXPECT_THAT(policy.refusal(), Mentions("1 times", "--max-restarts", "allows"));
  EXPECT_FALSE(restarts(0).after({killed, "", ""}));
}

TEST(Restarts, MendDeathsAndFailuresButNoDecisionsOfTheJob) {
  for (const char* role : {"worker", "server", "scheduler"}) EXPECT_TRUE(is_restartable(role, SIGKILL));
  EXPECT_TRUE(is_restartable("worker", exited_with(1)));
  EXPECT_FALSE(is_restartable("scheduler", exited_with(1))) << "its code is the job's verdict";
  for (const int code : {0, cluster::exit_code_peer_lost, cluster::exit_code_timeout,
                         cluster::exit_code_refused, cluster::exit_code_configuration})
    EXPECT_FALSE(is_restartable("worker", exited_with(code))) << code;
}

}  // namespace
}  // namespace muster::launch
