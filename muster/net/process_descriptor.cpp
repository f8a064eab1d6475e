#include "muster/net/descriptor.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

namespace muster::net {
namespace {

std::atomic<std::uint32_t> forks{0};

// The descriptors to close in a child, by number: a flood of unauthorized peers adds and removes thousands a
// second. Never destroyed: descriptors with static lifetime may outlive any order.
struct Registry {
  std::mutex mutex;
  std::vector<bool> fds;

  void add(int fd) {
    const auto place = static_cast<std::size_t>(fd);
    if (place >= fds.size()) fds.resize(2 * place + 1);
    fds[place] = true;
  }
  void remove(int fd) { fds[static_cast<std::size_t>(fd)] = false; }
  void close_all() {
    for (std::size_t fd = 0; fd < fds.size(); ++fd)
      if (fds[fd]) ::close(static_cast<int>(fd));
    fds.clear();
  }
};
Registry& registry() {
  static Registry* const made = [] {
    // The lock is held across fork(), so that the child finds the set whole.
    ::pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                     [] {
                       forks.fetch_add(1, std::memory_order_relaxed);
                       registry().close_all();
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
  registry().add(fd_);
}

ProcessDescriptor::~ProcessDescriptor() {
  if (fd_ < 0 || fork_count_ != fork_count()) return;
  const std::lock_guard lock(registry().mutex);
  registry().remove(fd_);
  ::close(fd_);
}

}  // namespace muster::net
