// Short waits of the ranks of one host for each other, before they sleep.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "muster/base/base.h"

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
        pauses_(ranks_of_host <= std::thread::hardware_concurrency() ? pauses_alone : pauses_crowded) {}

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

}  // namespace muster::collective
