// Clock of a thread that is always in one of a few states: how long it has been in each.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "muster/base/clock.h"

namespace muster {

// Without a lock: a child that is forked at any time finds none taken.
// Threads: one enters states, any reads.
class StateClock {
 public:
  static constexpr std::size_t states = 8;
  // That of WaitingScope; the others are the owner's.
  static constexpr std::size_t waiting = 0;

  // Begins `state`, and returns the one that it ends.
  std::size_t enter(std::size_t state, TimePoint now);
  // In each state, with the one that goes on. Never less than it was.
  std::array<Duration, states> spent(TimePoint now) const;

 private:
  std::atomic<std::uint64_t> changes_{0};  // twice each: it is odd between
  std::atomic<std::size_t> state_{1};
  std::atomic<Duration::rep> since_{0};  // 0: nothing was entered yet
  std::array<std::atomic<Duration::rep>, states> spent_{};
};

// For the calling thread, until the end of the process; no other thread has one then.
void set_thread_clock(StateClock& clock);
// Null on all threads but that one.
StateClock* thread_clock();

// While it lives, the calling thread waits for other processes: its clock says so, if it has one. They may
// nest.
class WaitingScope {
 public:
  WaitingScope();
  ~WaitingScope();
  WaitingScope(const WaitingScope&) = delete;
  WaitingScope& operator=(const WaitingScope&) = delete;

 private:
  StateClock* clock_;
  std::size_t before_ = 0;
};

}  // namespace muster
