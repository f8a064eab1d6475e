#include "muster/train/step_marks.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace muster::train {
namespace {
namespace step_marks_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StepMarksTest : public ::testing::Test {
 protected:
  void make_steps(int count, Duration each) {
    for (int i = 0; i < count; ++i) {
      now += each;
      if (marks.is_due(++step, now)) marks.add({.waiting_us = step});
    }
  }
  std::vector<std::uint64_t> steps() const {
    std::vector<std::uint64_t> made;
    for (const cluster::StepMark& mark : marks.last()) made.push_back(mark.step);
    return made;
  }

  StepMarks marks;
  TimePoint now{1h};
  std::uint64_t step = 0;
};

TEST_F(StepMarksTest, StandBehindEachStepThatIsLong) {
  make_steps(5, 100ms);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(StepMarksTest, OfShortStepsStandAtStepsThatAllRanksChoose) {
  make_steps(4000, 2ms);
  StepMarks other;
  for (std::uint64_t each = 2001; each <= 4000; ++each)  // it came later
    if (other.is_due(each, TimePoint{2h} + each * 2ms)) other.add({});
  const auto mine = steps();
  ASSERT_EQ(mine.size(), cluster::step_marks_told_max);
  for (std::size_t i = 1; i < mine.size(); ++i) EXPECT_EQ(mine[i] - mine[i - 1], 16u) << "of 32 ms";
  std::vector<std::uint64_t> theirs;
  for (const cluster::StepMark& mark : other.last()) theirs.push_back(mark.step);
  EXPECT_EQ(mine, theirs);
}

TEST_F(StepMarksTest, ComeAfterALongStepAmongShortOnes) {
  make_steps(1000, 1ms);
  const std::uint64_t before = steps().back();
  make_steps(1, 2s);
  EXPECT_EQ(steps().back(), step) << "not " << before;
}

TEST_F(StepMarksTest, KeepWhatWasSpentThen) {
  make_steps(100, 30ms);
  for (const cluster::StepMark& mark : marks.last()) EXPECT_EQ(mark.counters.waiting_us, mark.step);
}

TEST_F(StepMarksTest, SayWhenStepsTakeLongerUntilThatIsUsual) {
  for (const Duration usual : std::initializer_list<Duration>{2ms, 50ms, 1000ms}) {
    marks.begin_anew();
    make_steps(1000, usual);
    EXPECT_FALSE(marks.is_slower());
    const TimePoint until = now + 5 * std::max<Duration>(2 * usual, 64ms);
    while (!marks.is_slower() && now < until) make_steps(1, 2 * usual);
    EXPECT_TRUE(marks.is_slower()) << "within five turns";
    make_steps(1000, 2 * usual);
    EXPECT_FALSE(marks.is_slower());
  }
}

TEST_F(StepMarksTest, SayNothingOfOneLongStep) {
  make_steps(100, 50ms);
  for (int i = 0; i < 50; ++i) {
    make_steps(1, 500ms);
    EXPECT_FALSE(marks.is_slower());
    make_steps(3, 50ms);
  }
}

TEST_F(StepMarksTest, BeginAnewWhereStepsGoBack) {
  make_steps(10, 50ms);
  step = 3;
  make_steps(2, 50ms);
  EXPECT_THAT(steps(), ElementsAre(4, 5));
  marks.begin_anew();
  EXPECT_THAT(steps(), IsEmpty());
}

}  // namespace step_marks_test
}  // namespace
}  // namespace muster::train
