#include "muster/collective/reconnect_watch.h"

#include <algorithm>

namespace muster::collective {
namespace {

constexpr auto retry_interval = std::chrono::milliseconds(10);  // while a connection is being made again
constexpr auto check_interval = std::chrono::seconds(1);

}  // namespace

ReconnectWatch::ReconnectWatch(ReconnectAcceptor& acceptor, const net::StopSignal& stop, Duties duties)
    : acceptor_(acceptor), stop_(stop), duties_(std::move(duties)), thread_([this] { work(); }) {}

ReconnectWatch::~ReconnectWatch() {
  if (fork_count_ == net::fork_count())
    thread_.join();
  else
    thread_.detach();
}

// While there is more to do, the acceptor is looked at again after a while, whichever peer waits there, and
// so is all else: else it would be found open again and again while another thread is about to serve it.
void ReconnectWatch::work() {
  WaitList waits;
  bool more = false;
  const bool checks = duties_.check_peers != nullptr;
  TimePoint next_check = checks ? acceptor_.clock().now() + check_interval : TimePoint::max();
  for (;;) {
    waits.clear();
    waits.add(acceptor_.bell().fd(), {.reading = true});
    if (!more) {
      waits.add(acceptor_.fd(), {.reading = true});
      duties_.watch(waits);
    }
    TimePoint deadline = std::min(acceptor_.deadline(), next_check);
    if (more) deadline = std::min(deadline, acceptor_.clock().now() + retry_interval);
    const auto ready = waits.wait({.deadline = deadline, .stop = &stop_});
    if (!ready || *ready == net::Readiness::stopped) return;
    if (acceptor_.clock().now() >= next_check) {
      duties_.check_peers();
      next_check = acceptor_.clock().now() + check_interval;
    }
    acceptor_.bell().silence();
    const auto attended = duties_.attend();
    more = attended.value_or(true);  // what cannot be mended, the next call finds again and says
  }
}

}  // namespace muster::collective
