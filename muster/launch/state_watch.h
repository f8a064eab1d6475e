// State of a job, asked from its scheduler now and then, for the live line of a terminal.
#pragma once

#include <sys/types.h>

#include <deque>
#include <optional>
#include <string>

#include "muster/launch/launch_spec.h"
#include "muster/launch/status.h"
#include "muster/net/net.h"

namespace muster::launch {

// Steps a second over the last seconds.
class StepRate {
 public:
  static constexpr Duration window = std::chrono::seconds(10);

  void add(TimePoint time, std::uint64_t step);
  std::optional<double> per_second() const;

 private:
  struct Sample {
    TimePoint time;
    std::uint64_t step;
  };
  std::deque<Sample> samples_;
};

// "forming, 2 of 4 workers", "running, 12.3 steps/s", "recovering, epoch 2".
std::string state_text(const JobStatus& status, StepRate& rate, TimePoint now);

// A process of its own asks, so that no slow answer holds up who watches. It ends with its parent.
class StateWatch {
 public:
  // `spec` is of a process of the job: its variables say where the scheduler is, and what protects the way
  // where no `token` does. `clock` is borrowed for the call.
  static Result<StateWatch> start(const ProcessSpec& spec, const std::string& token, const Clock& clock);

  // Readable: there is news, for take().
  int fd() const { return news_.get(); }
  void take();
  // Empty as long as there was no answer.
  const std::string& text() const { return text_; }

 private:
  explicit StateWatch(net::Descriptor news) : news_(std::move(news)) {}

  net::Descriptor news_;
  std::string unfinished_;
  std::string text_;
};

}  // namespace muster::launch
