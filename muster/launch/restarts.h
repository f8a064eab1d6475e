// Restart rule: whether and when a process that ended is started again. Without clock and processes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "muster/base/base.h"

namespace muster::launch {

// Whether the end of a process is one that starting it again can mend: a death, or a failure of its own. One
// that only tells what the job has decided (a peer is lost for good, a deadline passed, it was refused) is
// not, nor is what a scheduler says by its exit code.
bool is_restartable(std::string_view role, int wait_status);

// Of one process.
class Restarts {
 public:
  static constexpr std::size_t same_failures_max = 3;

  // At most `restarts_max` times. The first restart is at once, the second waits for `delay`, each after it
  // twice as long as the one before, up to `delay_max`.
  Restarts(std::size_t restarts_max, Duration delay, Duration delay_max)
      : restarts_max_(restarts_max), delay_first_(delay), delay_max_(delay_max) {}

  // When to start it again after `failure` ("was killed by signal 9 (Killed)"), counted from now; nothing:
  // not again, and refusal() says why. `place` is the step behind which it came ("behind step 70"), empty
  // where that is not known. `progress` is anything that changes when the job gets on. The same failure in
  // the same place is the same one, whatever the others of the job have written meanwhile; of unknown place
  // it counts as another one after the job got on. Delays start anew when the job gets on to another failure.
  struct End {
    std::string failure = {};
    std::string place = {};
    std::string progress = {};
  };
  std::optional<Duration> after(const End& end);

  std::size_t restarts() const { return restarts_; }
  // "it has been started again 3 times, as often as --max-restarts allows".
  const std::string& refusal() const { return refusal_; }

 private:
  Duration next_delay();

  std::size_t restarts_max_;
  Duration delay_first_;
  Duration delay_max_;
  std::size_t restarts_ = 0;
  std::size_t restarts_here_ = 0;  // since delays started anew
  std::size_t same_failures_ = 0;
  std::optional<std::string> progress_ = {};
  std::string failure_ = {};
  std::string place_ = {};
  std::string refusal_ = {};
};

}  // namespace muster::launch
