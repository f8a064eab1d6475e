#include "muster/base/state_clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace muster {
namespace {

using namespace std::chrono_literals;

TimePoint at(Duration time) { return TimePoint{} + 1h + time; }

TEST(StateClock, CountsTheTimeInEachState) {
  StateClock clock;
  clock.enter(2, at(0s));
  EXPECT_EQ(clock.enter(StateClock::waiting, at(3s)), 2u);
  clock.enter(2, at(4s));
  const auto spent = clock.spent(at(6s));
  EXPECT_EQ(spent[2], 5s) << "with the one that goes on";
  EXPECT_EQ(spent[StateClock::waiting], 1s);
  EXPECT_EQ(spent[1], 0s) << "nothing before the first";
}

TEST(StateClock, IsReadWhileItGoesOn) {
  StateClock clock;
  clock.enter(1, at(0s));
  std::jthread writer([&clock](const std::stop_token& stop) {
    std::int64_t count = 0;
    while (!stop.stop_requested()) {
      ++count;
      clock.enter(1 + static_cast<std::size_t>(count % 2), at(count * 1us));
    }
  });
  Duration last{};
  for (int i = 0; i < 20'000; ++i) {
    const auto spent = clock.spent(at(0s));
    const Duration sum = spent[1] + spent[2];
    ASSERT_GE(sum, last) << "time went back";
    last = sum;
  }
}

TEST(WaitingScope, CountsForTheThreadOfTheClockAlone) {
  static StateClock clock;  // stays the clock of this thread
  std::thread([] {
    set_thread_clock(clock);
    clock.enter(1, real_clock().now());
    {
      const WaitingScope outer;
      const WaitingScope inner;
      std::thread([] {
        EXPECT_EQ(thread_clock(), nullptr);
        const WaitingScope of_another;
      }).join();
    }
    EXPECT_EQ(clock.enter(1, real_clock().now()), 1u) << "both have ended";
    EXPECT_GT(clock.spent(real_clock().now())[StateClock::waiting], Duration(0));
  }).join();
}

TEST(ComputingScope, CountsInPlaceOfTheScriptAndOfNothingElse) {
  static StateClock clock;  // stays the clock of this thread
  std::thread([] {
    set_thread_clock(clock);
    clock.enter(StateClock::script, real_clock().now());
    {
      const ComputingScope outer;
      const ComputingScope inner;
      EXPECT_EQ(clock.state(), StateClock::computing);
      const WaitingScope waiting;
      const ComputingScope of_what_waits;
      EXPECT_EQ(clock.state(), StateClock::waiting);
    }
    EXPECT_EQ(clock.state(), StateClock::script);
    constexpr std::size_t evaluating = 6;
    clock.enter(evaluating, real_clock().now());
    const ComputingScope computing;
    EXPECT_EQ(clock.state(), evaluating);
  }).join();
}

}  // namespace
}  // namespace muster
