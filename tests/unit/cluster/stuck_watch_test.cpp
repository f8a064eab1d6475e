#include "muster/cluster/stuck_watch.h"

#include <gtest/gtest.h>

namespace muster::cluster {
namespace {

using namespace std::chrono_literals;
using Mark = StuckWatch::Mark;

class Stuck : public ::testing::Test {
 protected:
  void steps(int count, Duration each) {
    for (int i = 0; i < count; ++i) {
      clock.advance(each);
      const Mark before{step, 0};
      ended = watch.moved(before, {++step, 0}, clock.now());
    }
  }
  // How long it takes until people are told.
  std::optional<Duration> told_after(WorkPhase phase, Duration patience = 1h) {
    const TimePoint start = clock.now();
    while (clock.now() - start < patience) {
      clock.advance(100ms);
      if (watch.is_due(phase, clock.now())) return clock.now() - start;
    }
    return std::nullopt;
  }

  ManualClock clock;
  StuckWatch watch{std::nullopt};
  std::uint64_t step = 0;
  std::optional<Duration> ended;
};

TEST_F(Stuck, IsPatientUntilItKnowsWhatAStepTakes) {
  watch.begin(clock.now());
  steps(3, 1s);
  EXPECT_EQ(told_after(WorkPhase::computing), 5min);
}

TEST_F(Stuck, IsSaidTenSecondsAfterTheLastOfManyShortSteps) {
  watch.begin(clock.now());
  steps(1, 100s);  // compiles
  steps(20, 200ms);
  EXPECT_EQ(told_after(WorkPhase::computing), 10s);
}

TEST_F(Stuck, IsSaidAfterTwentyLongSteps) {
  watch.begin(clock.now());
  steps(20, 3s);
  EXPECT_EQ(told_after(WorkPhase::reading_data), 60s);
}

TEST_F(Stuck, GivesTheScriptMoreTimeAndTheDiskMost) {
  watch.begin(clock.now());
  steps(20, 200ms);
  EXPECT_EQ(watch.limit(WorkPhase::script), 30s);
  EXPECT_EQ(watch.limit(WorkPhase::saving), 60s);
  EXPECT_EQ(watch.limit(WorkPhase::evaluating), 60s);
  EXPECT_EQ(watch.limit(WorkPhase::starting), 5min);
}

TEST_F(Stuck, IsSaidAgainWithLongerAndLongerPauses) {
  watch.begin(clock.now());
  steps(20, 200ms);
  EXPECT_EQ(told_after(WorkPhase::computing), 10s);
  EXPECT_EQ(told_after(WorkPhase::computing), 10s);
  EXPECT_EQ(told_after(WorkPhase::computing), 20s);
  EXPECT_EQ(told_after(WorkPhase::computing), 40s);
}

TEST_F(Stuck, EndsWithTheNextStepWhichSaysHowLongItWas) {
  watch.begin(clock.now());
  steps(20, 200ms);
  told_after(WorkPhase::computing);
  EXPECT_EQ(ended, std::nullopt);
  steps(1, 2s);
  EXPECT_EQ(ended, 12s);
  steps(1, 200ms);
  EXPECT_EQ(ended, std::nullopt) << "said once";
}

TEST_F(Stuck, LearnsFromAPauseThatEndedByItself) {
  watch.begin(clock.now());
  steps(20, 200ms);
  steps(1, 40s);  // the end of an epoch
  steps(20, 200ms);
  EXPECT_EQ(told_after(WorkPhase::computing), 80s);
}

TEST_F(Stuck, IsSaidOnceAtMostWhereAllStepsTakeManyMinutes) {
  watch.begin(clock.now());
  steps(1, 8min);
  EXPECT_EQ(watch.limit(WorkPhase::computing), 16min);
  steps(10, 8min);
  EXPECT_EQ(watch.limit(WorkPhase::computing), 160min);
}

TEST_F(Stuck, LearnsFromTheStepsOfAllHoweverManyProcessesTellOfThem) {
  watch.begin(clock.now());
  for (step = 1; step < 20; ++step) {
    clock.advance(5s);
    for (int process = 0; process < 100; ++process) watch.moved({step - 1, 0}, {step, 0}, clock.now());
  }
  EXPECT_EQ(watch.usual(), 5s);
  EXPECT_EQ(told_after(WorkPhase::computing), 100s);
}

TEST_F(Stuck, IsNotAJobThatFinishesBatchesOfAnEvaluation) {
  watch.begin(clock.now());
  steps(20, 200ms);
  for (std::uint64_t batch = 0; batch < 100; ++batch) {
    clock.advance(5s);
    EXPECT_FALSE(watch.is_due(WorkPhase::computing, clock.now()));
    watch.moved({step, batch}, {step, batch + 1}, clock.now());
  }
}

TEST_F(Stuck, IsSaidAfterTwiceTheFirstStepsOfTheJobWhereARecoveredOneMakesNone) {
  watch.begin(clock.now());
  steps(1, 40s);  // compiles
  steps(20, 200ms);
  watch.begin(clock.now());
  EXPECT_EQ(watch.limit(WorkPhase::computing), 80s);
  EXPECT_EQ(told_after(WorkPhase::starting), 80s);
}

TEST_F(Stuck, IsSaidAfterAMinuteWhereARecoveredJobWithQuickFirstStepsMakesNone) {
  watch.begin(clock.now());
  steps(20, 200ms);
  watch.begin(clock.now());
  EXPECT_EQ(told_after(WorkPhase::reading_data), 60s);
}

TEST_F(Stuck, KnowsTheTimesOfStepsAsSoonAsSomeWereMadeAgain) {
  watch.begin(clock.now());
  steps(20, 200ms);
  watch.begin(clock.now());
  watch.moved({}, {step, 0}, clock.now());  // all of them between two heartbeats
  EXPECT_EQ(told_after(WorkPhase::computing), 10s);
}

TEST_F(Stuck, IsPatientInTheNextEpochWhereTheOneBeforeHadNoStep) {
  watch.begin(clock.now());
  watch.begin(clock.now());
  EXPECT_EQ(watch.limit(WorkPhase::computing), 5min);
}

TEST_F(Stuck, LearnsNoPatienceWithFirstStepsFromALaterPause) {
  watch.begin(clock.now());
  steps(20, 200ms);
  steps(1, 20min);
  watch.begin(clock.now());
  EXPECT_EQ(watch.limit(WorkPhase::computing), 60s);
}

TEST_F(Stuck, CountsNoPauseOfTheScheduler) {
  watch.begin(clock.now());
  steps(20, 200ms);
  clock.advance(100s);
  watch.forgive(100s);
  EXPECT_FALSE(watch.is_due(WorkPhase::computing, clock.now()));
  EXPECT_EQ(told_after(WorkPhase::computing), 10s);
}

TEST(StuckLimit, IsWhatTheUserChoseOnceThereWasAStep) {
  StuckWatch watch{2s};
  watch.begin(TimePoint{});
  EXPECT_EQ(watch.limit(WorkPhase::saving), 5min);
  watch.moved({0, 0}, {1, 0}, TimePoint{} + 1s);
  EXPECT_EQ(watch.limit(WorkPhase::saving), 2s);
}

TEST(StuckLimit, OfTheUserHoldsBehindARecoveryToo) {
  StuckWatch watch{2s};
  watch.begin(TimePoint{});
  watch.moved({0, 0}, {1, 0}, TimePoint{} + 3s);
  watch.begin(TimePoint{} + 4s);
  EXPECT_EQ(watch.limit(WorkPhase::computing), 6s) << "twice what the first steps took";
  watch.moved({0, 0}, {1, 0}, TimePoint{} + 5s);
  EXPECT_EQ(watch.limit(WorkPhase::computing), 2s);
}

TEST(StuckLimit, OfNothingIsNone) {
  StuckWatch watch{0s};
  watch.begin(TimePoint{});
  watch.moved({0, 0}, {1, 0}, TimePoint{} + 1s);
  EXPECT_FALSE(watch.is_due(WorkPhase::computing, TimePoint{} + 1000h));
}

}  // namespace
}  // namespace muster::cluster
