// Wait of a blocking call: its deadline, and the signals that end it early.
#pragma once

#include <poll.h>

#include <atomic>
#include <span>

#include "muster/base/base.h"
#include "muster/net/process_descriptor.h"

namespace muster::net {

// Raised at most once, by any thread; every wait that was given it ends at once.
class StopSignal {
 public:
  static Result<StopSignal> create();
  StopSignal(StopSignal&& other) noexcept : event_(std::move(other.event_)), raised_(other.raised()) {}

  void raise();
  bool raised() const { return raised_.load(std::memory_order_acquire); }
  // Readable once raised.
  int fd() const { return event_.get(); }

 private:
  explicit StopSignal(ProcessDescriptor event) : event_(std::move(event)) {}

  ProcessDescriptor event_;
  std::atomic<bool> raised_{false};
};

// Rung by any thread, readable until it is silenced.
class Bell {
 public:
  static Result<Bell> create();
  // One that another process has made and handed over.
  static Bell of(ProcessDescriptor event) { return Bell(std::move(event)); }
  void ring() const;
  void silence() const;
  int fd() const { return event_.get(); }

 private:
  explicit Bell(ProcessDescriptor event) : event_(std::move(event)) {}

  ProcessDescriptor event_;
};

struct Wait {
  TimePoint deadline;
  const StopSignal* stop = nullptr;  // borrowed, may be none
};

enum class Readiness { ready, deadline, stopped };
// Waits until one of `polled` is ready. The last entry is overwritten with the stop signal: leave it room.
Result<Readiness> poll_until(std::span<pollfd> polled, const Wait& wait);

}  // namespace muster::net
