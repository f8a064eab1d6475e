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
  // Those of WaitingScope and ComputingScope; the others are the owner's.
  static constexpr std::size_t waiting = 0, script = 2, computing = 4;

  // Begins `state`, and returns the one that it ends.
  std::size_t enter(std::size_t state, TimePoint now);
  // The one that goes on. Of who enters states.
  std::size_t state() const { return state_.load(std::memory_order_relaxed); }
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

// While it lives, the calling thread computes something that its script has asked for: its clock says so, if
// it has one and that counts the time as the script's.
class ComputingScope {
 public:
  ComputingScope();
  ~ComputingScope();
  ComputingScope(const ComputingScope&) = delete;
  ComputingScope& operator=(const ComputingScope&) = delete;

 private:
  StateClock* clock_;  // null: nothing is to be said
};

}  // namespace muster
