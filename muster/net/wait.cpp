#include "muster/net/descriptor.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "muster/base/base.h"

namespace muster::net {

namespace {

Result<ProcessDescriptor> make_event() {
  ProcessDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return fail_errno("cannot make an event descriptor", errno);
  return event;
}

void make_readable(const ProcessDescriptor& event) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event.get(), &one, sizeof(one));
}

}  // namespace

Result<StopSignal> StopSignal::create() {
  MUSTER_TRY(ProcessDescriptor event, make_event());
  return StopSignal(std::move(event));
}

void StopSignal::raise() {
  if (!raised_.exchange(true, std::memory_order_acq_rel)) make_readable(event_);
}

Result<Bell> Bell::create() {
  MUSTER_TRY(ProcessDescriptor event, make_event());
  return Bell(std::move(event));
}

void Bell::ring() const { make_readable(event_); }

void Bell::silence() const {
  std::uint64_t rung = 0;
  [[maybe_unused]] const ssize_t taken = ::read(event_.get(), &rung, sizeof(rung));
}

Result<Readiness> poll_until(std::span<pollfd> polled, const Wait& wait) {
  MUSTER_CHECK(!polled.empty(), "poll_until needs room for the stop signal");
  polled.back() = {.fd = wait.stop != nullptr ? wait.stop->fd() : -1, .events = POLLIN, .revents = 0};
  for (;;) {
    if (wait.stop != nullptr && wait.stop->raised()) return Readiness::stopped;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(wait.deadline - real_clock().now()).count();
    constexpr long look_ms = std::chrono::ceil<std::chrono::milliseconds>(wait_slice).count();
    const long longest_ms = looks_while_waiting() ? look_ms : 60'000;  // the loop goes on
    const int timeout_ms = static_cast<int>(std::clamp(static_cast<long>(left), 0L, longest_ms));
    const int ready = ::poll(polled.data(), polled.size(), timeout_ms);
    if (ready < 0 && errno != EINTR) return fail_errno("poll failed", errno);
    if (ready > 0) return polled.back().revents != 0 ? Readiness::stopped : Readiness::ready;
    if (ready == 0 && left <= longest_ms) return Readiness::deadline;
    look_while_waiting();
  }
}

}  // namespace muster::net
