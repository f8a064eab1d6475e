#include "muster/collective/door_watch.h"

#include <algorithm>
#include <array>

namespace muster::collective {
namespace {

constexpr auto look_interval = std::chrono::milliseconds(10);  // while a connection is being made again

}  // namespace

DoorWatch::DoorWatch(Door& door, const net::StopSignal& stop, std::function<Result<bool>()> attend)
    : door_(door), stop_(stop), attend_(std::move(attend)), thread_([this] { work(); }) {}

DoorWatch::~DoorWatch() {
  if (fork_count_ == net::fork_count())
    thread_.join();
  else
    thread_.detach();
}

// While there is more to do, the door is looked at again after a while, whoever stands there: else it would
// be found open again and again while somebody else is about to serve it.
void DoorWatch::work() {
  bool more = false;
  for (;;) {
    std::array<pollfd, 3> polled{pollfd{.fd = more ? -1 : door_.fd(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = door_.bell().fd(), .events = POLLIN, .revents = 0}};
    TimePoint deadline = door_.deadline();
    if (more) deadline = std::min(deadline, real_clock().now() + look_interval);
    const auto ready = net::poll_until(polled, {.deadline = deadline, .stop = &stop_});
    if (!ready || *ready == net::Readiness::stopped) return;
    door_.bell().silence();
    const auto attended = attend_();
    more = attended.value_or(true);  // what cannot be mended, the next call finds again and says
  }
}

}  // namespace muster::collective
