#include "muster/collective/wait_list.h"

namespace muster::collective {

void WaitList::add(int fd, Interest interest) {
  const int events = (interest.reading ? POLLIN : 0) | (interest.writing ? POLLOUT : 0);
  polled_.push_back({.fd = fd, .events = static_cast<short>(events), .revents = 0});
}

Result<net::Readiness> WaitList::wait(const net::Wait& wait) {
  polled_.emplace_back();  // for the signal to stop
  const auto ready = net::poll_until(polled_, wait);
  polled_.pop_back();
  return ready;
}

bool WaitList::look() { return ::poll(polled_.data(), polled_.size(), 0) > 0; }

}  // namespace muster::collective
