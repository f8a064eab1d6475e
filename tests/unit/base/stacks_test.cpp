// Stacks of this process, taken while its main thread does something.
#include "muster/base/stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

namespace muster {
namespace stacks_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

std::atomic<bool> goes_on = true;

[[gnu::noinline]] void turns_round_and_round() {
  while (goes_on) {
  }
}
[[gnu::noinline]] void waits_for_a_pipe(int descriptor) {
  char byte = 0;
  while (goes_on && ::read(descriptor, &byte, 1) < 0) {
  }
}

// gtest runs its tests on the main thread.
template <class Busy>
std::string stacks_while(Busy busy) {
  goes_on = true;
  auto taken = std::async(std::launch::async, [] {
    std::this_thread::sleep_for(20ms);
    std::string text = take_stacks();
    goes_on = false;
    return text;
  });
  busy();
  return taken.get();
}

TEST(Stacks, ShowWhereTheMainThreadTurnsInALoop) {
  EXPECT_THAT(stacks_while(turns_round_and_round), HasSubstr("muster::stacks_test::turns_round_and_round ("));
}

TEST(Stacks, ShowWhereTheMainThreadWaitsInTheKernel) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread release([&] {
    while (goes_on) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
  });
  EXPECT_THAT(stacks_while([&] { waits_for_a_pipe(ends[0]); }),
              HasSubstr("muster::stacks_test::waits_for_a_pipe ("));
  goes_on = false;
  release.join();
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Stacks, SayThatTheMainThreadBlocksSignalsAndAreThereAgainLater) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto start = std::chrono::steady_clock::now();
  const std::string text = stacks_while(turns_round_and_round);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_THAT(text, HasSubstr("has not answered a signal"));
  EXPECT_THAT(stacks_while(turns_round_and_round), HasSubstr("turns_round_and_round"));
}

std::atomic<int> own_signals = 0;

TEST(Stacks, LeaveTheProgramsOwnHandlerAsItWasAndItsSignalsToIt) {
  struct sigaction own = {}, before = {}, after = {};
  own.sa_handler = [](int) { ++own_signals; };
  ASSERT_EQ(::sigaction(SIGURG, &own, &before), 0);
  stacks_while(turns_round_and_round);
  EXPECT_EQ(own_signals, 0);
  ASSERT_EQ(::sigaction(SIGURG, nullptr, &after), 0);
  EXPECT_EQ(after.sa_handler, own.sa_handler);
  // One that comes meanwhile from elsewhere.
  goes_on = true;
  std::thread other([] {
    while (goes_on) {
      ::kill(::getpid(), SIGURG);
      std::this_thread::sleep_for(1ms);
    }
  });
  stacks_while(turns_round_and_round);
  other.join();
  EXPECT_GT(own_signals, 0);
  ASSERT_EQ(::sigaction(SIGURG, &before, nullptr), 0);
}

std::atomic<int> signals_of_other_thread = 0;

TEST(Stacks, LeaveSignalsOfOtherThreadsToThem) {
  struct sigaction own = {}, before = {};
  own.sa_handler = [](int) { ++signals_of_other_thread; };
  ASSERT_EQ(::sigaction(SIGURG, &own, &before), 0);
  goes_on = true;
  int sent = 0;
  std::thread other([&] {
    for (; goes_on; ++sent) {
      ::pthread_kill(::pthread_self(), SIGURG);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  const std::string text = stacks_while(turns_round_and_round);
  other.join();
  EXPECT_THAT(text, HasSubstr("turns_round_and_round"));
  EXPECT_EQ(signals_of_other_thread, sent);
  ASSERT_EQ(::sigaction(SIGURG, &before, nullptr), 0);
}

[[gnu::noinline]] int falls(int depth) {
  if (depth == 0) {
    turns_round_and_round();
    return 0;
  }
  return falls(depth - 1) + 1;
}

TEST(Stacks, HaveALimit) {
  volatile int depth = 10'000;
  const std::string text = stacks_while([&] { falls(depth); });
  EXPECT_THAT(text, HasSubstr("stacks_test::falls ("));
  EXPECT_LE(text.size(), stacks_size_bytes_max);
}

constinit std::atomic<bool> language_answers = true;

TEST(Stacks, AskTheLanguageAboveAndElseLookFromTheSignalHandler) {
  static const LanguageStacks language{
      .name = "Tongue",
      .ask = [](Duration) -> std::optional<std::string> {
        if (!language_answers) return std::nullopt;
        return "  all threads of Tongue\n";
      },
      .write_main_thread =
          [](int descriptor) { static_cast<void>(!::write(descriptor, "  main thread alone\n", 20)); }};
  set_language_stacks(&language);
  std::string text = stacks_while(turns_round_and_round);
  EXPECT_THAT(text, HasSubstr("all threads of Tongue"));
  EXPECT_THAT(text, Not(HasSubstr("main thread alone")));
  language_answers = false;
  text = stacks_while(turns_round_and_round);
  EXPECT_THAT(text, HasSubstr("Tongue: it runs native code"));
  EXPECT_THAT(text, HasSubstr("main thread alone"));
  EXPECT_THAT(text, HasSubstr("turns_round_and_round"));
  set_language_stacks(nullptr);
}

}  // namespace stacks_test
}  // namespace muster
