// Termination: SIGTERM for a process that others still need. Batch systems send it to all processes of a job
// at once; who serves the others ends behind them.
#pragma once

#include <optional>

#include "muster/base/clock.h"

namespace muster {

// Takes SIGTERM over as long as it lives, unless the process has a handler of its own. One in a process at a
// time.
class Termination {
 public:
  Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;
  ~Termination();

  // To be asked now and then: ends a process that was told to, once no worker needs it or its patience is
  // over, or as soon as it is told again. Says once that it goes on.
  void look(bool is_needed, TimePoint now);
  // Whether it was told to end.
  bool is_asked(TimePoint now);
  // By the signal, as if it had never been taken over.
  [[noreturn]] void end_process();

 private:
  // Whether the patience is over, or it was told again.
  bool is_due(TimePoint now);

  bool has_taken_over_ = false;
  bool has_said_ = false;
  unsigned counted_ = 0;  // signals that are one request
  std::optional<TimePoint> asked_at_ = {};
};

}  // namespace muster
