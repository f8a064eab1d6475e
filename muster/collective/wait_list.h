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
  void clear() {
    polled_.clear();
    places_.clear();
  }
  // The place of the next one that is added.
  std::size_t size() const { return places_.size(); }
  void add(int fd, Interest interest);
  // Of the one that was added last: another descriptor, which becomes readable when it is ready but does not
  // say that it has ended; and that it is ready now, so that no wait begins.
  void add_beside(int fd) { polled_.push_back({.fd = fd, .events = POLLIN, .revents = 0}); }
  void mark_ready() { places_.back().is_ready = true; }

  // Waits until one of them is ready.
  Result<net::Readiness> wait(const net::Wait& wait);
  // Without waiting: whether one of them is.
  bool look();

  // What the last of these found at a place.
  bool is_ready(std::size_t place) const;
  bool has_ended(std::size_t place) const {
    return (polled_[places_[place].first].revents & (POLLERR | POLLHUP)) != 0;
  }

 private:
  struct Place {
    std::size_t first = 0;  // of its descriptors, the one that says that it has ended
    bool is_ready = false;
  };
  bool has_ready() const;

  std::vector<pollfd> polled_;
  std::vector<Place> places_;
};

}  // namespace muster::collective
