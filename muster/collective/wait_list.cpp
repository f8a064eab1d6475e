#include "muster/collective/wait_list.h"

#include <algorithm>

namespace muster::collective {

void WaitList::add(int fd, Interest interest) {
  const int events = (interest.reading ? POLLIN : 0) | (interest.writing ? POLLOUT : 0);
  places_.push_back({.first = polled_.size()});
  polled_.push_back({.fd = fd, .events = static_cast<short>(events), .revents = 0});
}

Result<net::Readiness> WaitList::wait(const net::Wait& wait) {
  const bool is_over = has_ready();
  polled_.emplace_back();  // for the signal to stop
  auto ready = net::poll_until(polled_, is_over ? net::Wait{.deadline = {}, .stop = wait.stop} : wait);
  polled_.pop_back();
  if (is_over && ready && *ready == net::Readiness::deadline) return net::Readiness::ready;
  return ready;
}

bool WaitList::look() { return ::poll(polled_.data(), polled_.size(), 0) > 0 || has_ready(); }

bool WaitList::is_ready(std::size_t place) const {
  const std::size_t end = place + 1 < places_.size() ? places_[place + 1].first : polled_.size();
  for (std::size_t i = places_[place].first; i < end; ++i)
    if (polled_[i].revents != 0) return true;
  return places_[place].is_ready;
}

bool WaitList::has_ready() const {
  return std::ranges::any_of(places_, [](const Place& place) { return place.is_ready; });
}

}  // namespace muster::collective
