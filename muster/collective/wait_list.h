// List of the links, listeners and bells that a thread waits for together.
#pragma once

#include <poll.h>

#include <cstddef>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/net.h"

namespace muster::collective {

// What of a descriptor or link is awaited; that it ends always is.
struct Interest {
  bool reading = false;
  bool writing = false;
};

// Threads: one at a time. Descriptors are borrowed.
class WaitList {
 public:
  void clear() { polled_.clear(); }
  // The place of the next one that is added.
  std::size_t size() const { return polled_.size(); }
  void add(int fd, Interest interest);

  // Waits until one of them is ready.
  Result<net::Readiness> wait(const net::Wait& wait);
  // Without waiting: whether one of them is.
  bool look();

  // What the last of these found at a place.
  bool is_ready(std::size_t place) const { return polled_[place].revents != 0; }
  bool has_ended(std::size_t place) const { return (polled_[place].revents & (POLLERR | POLLHUP)) != 0; }

 private:
  std::vector<pollfd> polled_;
};

}  // namespace muster::collective
