#include "muster/base/clock.h"

#include <ctime>

namespace muster {
namespace {

class RealClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace

Clock& real_clock() {
  static RealClock clock;
  return clock;
}

Duration thread_processor_time() {
  timespec time{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace muster
