// Looks before a sleep: how long, and when not.
#include <gtest/gtest.h>

#include <chrono>

#include "muster/base/base.h"
#include "muster/collective/waiting.h"

namespace muster::collective {
namespace {

using std::chrono::microseconds;

// Looks that find nothing, each of them so long, until it sleeps: how many after the first.
int looks_in_vain(LookAgain& look, ManualClock& clock, Duration each) {
  int looks = 0;
  while (look.once_more()) {
    clock.advance(each);
    ++looks;
  }
  return looks;
}

TEST(LookAgain, LooksForAMomentThenSleeps) {
  ManualClock clock;
  LookAgain look(clock);
  EXPECT_EQ(looks_in_vain(look, clock, microseconds(1)), 51);
}

TEST(LookAgain, GoesOnWhereLooksFindSomething) {
  ManualClock clock;
  LookAgain look(clock);
  for (int wait = 0; wait < 10; ++wait) {
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(look.once_more()) << wait;
      clock.advance(microseconds(1));
    }
    look.found();
  }
}

TEST(LookAgain, SleepsAtOnceMoreAndMoreOftenWhereLooksAreInVain) {
  ManualClock clock;
  LookAgain look(clock);
  int sleeps_before_last = -1;
  for (const int sleeps : {0, 1, 3, 7, 15, 31, 63, 64, 64}) {
    EXPECT_GT(looks_in_vain(look, clock, microseconds(1)), 0);
    for (int wait = 0; wait < sleeps; ++wait) {
      EXPECT_FALSE(look.once_more()) << sleeps << " after " << sleeps_before_last;
      look.found();  // what woke it is no look's success
    }
    sleeps_before_last = sleeps;
  }
}

TEST(LookAgain, LeavesASharedCoreToWhoComputes) {
  ManualClock clock;
  LookAgain look(clock);
  EXPECT_EQ(looks_in_vain(look, clock, std::chrono::milliseconds(3)), 1);
  for (int wait = 0; wait < 64; ++wait) EXPECT_FALSE(look.once_more());
  EXPECT_TRUE(look.once_more());
}

TEST(LookAgain, EndsUnderAClockThatStands) {
  ManualClock clock;
  LookAgain look(clock);
  EXPECT_EQ(looks_in_vain(look, clock, {}), 1000);
}

}  // namespace
}  // namespace muster::collective
