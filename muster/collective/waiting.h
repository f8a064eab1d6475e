// Short waits of the ranks of one host for each other, before they sleep.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "muster/base/base.h"
#include "muster/base/cores.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muster::collective {

inline void pause_core() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A short wait spins; then it gives the core away, which with more ranks than cores is what lets the others
// arrive; then a rank that waits should sleep. One that gets the core back only after a millisecond shares it
// with a process that computes (a backward pass beside this call), and is woken sooner than its turn comes
// again.
class ShortWait {
 public:
  // `clock` is borrowed.
  ShortWait(std::size_t ranks_of_host, const Clock& clock)
      : clock_(clock),
        pauses_(ranks_of_host <= static_cast<std::size_t>(host_cores()) ? pauses_alone : pauses_crowded) {}

  // Whether `done()` became true meanwhile. `before_yielding()` is called once if it did not soon.
  template <class Done, class Before>
  bool until(Done&& done, Before&& before_yielding) const {
    for (std::uint32_t i = 0; i < pauses_; ++i) {
      if (done()) return true;
      pause_core();
    }
    before_yielding();
    const TimePoint last = clock_.now() + yields_longest;
    for (std::uint32_t i = 0; i < yields && clock_.now() < last; ++i) {
      if (done()) return true;
      ::sched_yield();
    }
    return done();
  }

 private:
  static constexpr std::uint32_t pauses_alone = 20;
  static constexpr std::uint32_t pauses_crowded = 1;
  static constexpr std::uint32_t yields = 200;
  static constexpr Duration yields_longest = std::chrono::milliseconds(1);

  const Clock& clock_;
  std::uint32_t pauses_;
};

// Before a rank sleeps until a connection has something, it looks again for a moment: to be woken takes
// longer than the other side's next bytes on their way. Where that was in vain, or the core is shared with a
// process that computes, the next waits sleep at once.
class LookAgain {
 public:
  // `clock` is borrowed.
  explicit LookAgain(const Clock& clock) : clock_(clock) {}

  // After a look that found nothing: whether to look once more, else to sleep.
  bool once_more() {
    if (looks_ == 0 && sleeps_ > 0) {
      --sleeps_;
      return false;
    }
    const TimePoint now = clock_.now();
    if (looks_ == 0) begin_ = last_ = now;
    const bool is_shared = now - last_ > turn_of_another;
    if (is_shared || now - begin_ > longest || looks_ == looks_most) return give_up(is_shared);
    last_ = now;
    ++looks_;
    if (looks_ > looks_before_yielding)
      ::sched_yield();
    else
      pause_core();
    return true;
  }

  // A look found something.
  void found() {
    if (looks_ > 0) sleeps_after_next_ = 0;
    looks_ = 0;
  }

 private:
  static constexpr Duration longest = std::chrono::microseconds(50);
  static constexpr Duration turn_of_another = std::chrono::microseconds(500);
  static constexpr std::uint32_t looks_most = 1000;  // whatever the clock says
  static constexpr std::uint32_t looks_before_yielding = 4;
  static constexpr std::uint32_t sleeps_most = 64;

  bool give_up(bool is_shared) {
    looks_ = 0;
    sleeps_ = is_shared ? sleeps_most : sleeps_after_next_;
    sleeps_after_next_ = std::min(2 * sleeps_after_next_ + 1, sleeps_most);
    return false;
  }

  const Clock& clock_;
  TimePoint begin_{}, last_{};
  std::uint32_t looks_ = 0;  // of this wait
  std::uint32_t sleeps_ = 0;
  std::uint32_t sleeps_after_next_ = 0;
};

}  // namespace muster::collective
