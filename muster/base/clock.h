// Time as an argument. Deadlines use the monotonic clock only: a jump of the wall clock never ends a job.
#pragma once

#include <chrono>

namespace muster {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

// The process's monotonic clock.
Clock& real_clock();

// The processor time that this thread has had.
Duration thread_processor_time();

// A clock that moves only when told to: the simulated counterpart.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration step) { now_ += step; }

 private:
  TimePoint now_{};
};

}  // namespace muster
