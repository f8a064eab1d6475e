// Descriptors: those that close themselves, signals that are descriptors, and waiting for them.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>

#include "muster/base/base.h"

namespace muster::net {

// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // The caller closes it from here on.
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

// How often this process image was forked from the one that loaded Muster: 0 in the original, more in a child
// of fork(). Costs one load.
std::uint32_t fork_count();

// Closes its descriptor when destroyed. A child of fork() closes its copies at once, so that it cannot keep
// the connections of a dead parent open; there the owner's destructor does nothing.
class ProcessDescriptor {
 public:
  ProcessDescriptor() = default;
  explicit ProcessDescriptor(int fd);
  ProcessDescriptor(ProcessDescriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), fork_count_(other.fork_count_) {}
  ProcessDescriptor& operator=(ProcessDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(fork_count_, other.fork_count_);
    return *this;
  }
  ~ProcessDescriptor();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
  std::uint32_t fork_count_ = 0;
};

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

// Descriptors that are waited for as one, by several threads if need be: a thread that waits is woken by
// those that are added later, too.
class PollSet {
 public:
  static Result<PollSet> create();
  // From now on the set is readable when `fd` is. Closing `fd` takes it out.
  Result<> add(int fd);
  void remove(int fd);
  // Readable while one of them is.
  int fd() const { return set_.get(); }

 private:
  explicit PollSet(ProcessDescriptor set) : set_(std::move(set)) {}
  ProcessDescriptor set_;
};

}  // namespace muster::net
