#include "muster/net/process_descriptor.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>

namespace muster::net {
namespace {

std::atomic<std::uint32_t> forks{0};

// The descriptors to close in a child. Never destroyed: descriptors with static lifetime may outlive any
// order.
struct Registry {
  std::mutex mutex;
  std::set<int> fds;
};
Registry& registry() {
  static Registry* const made = [] {
    // The lock is held across fork(), so that the child finds the set whole.
    ::pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                     [] {
                       forks.fetch_add(1, std::memory_order_relaxed);
                       for (const int fd : registry().fds) ::close(fd);
                       registry().fds.clear();
                       registry().mutex.unlock();
                     });
    return new Registry;
  }();
  return *made;
}

}  // namespace

std::uint32_t fork_count() { return forks.load(std::memory_order_relaxed); }

ProcessDescriptor::ProcessDescriptor(int fd) : fd_(fd), fork_count_(fork_count()) {
  if (fd_ < 0) return;
  const std::lock_guard lock(registry().mutex);
  registry().fds.insert(fd_);
}

ProcessDescriptor::~ProcessDescriptor() {
  if (fd_ < 0 || fork_count_ != fork_count()) return;
  const std::lock_guard lock(registry().mutex);
  registry().fds.erase(fd_);
  ::close(fd_);
}

}  // namespace muster::net
