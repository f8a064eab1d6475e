// A file descriptor that belongs to this process alone, not to its forked children.
#pragma once

#include <cstdint>
#include <utility>

namespace muster::net {

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

}  // namespace muster::net
