#include "muster/net/process.h"

#include <pthread.h>
#include <unistd.h>

namespace muster::net {
namespace {

void give_back_limit(std::atomic<rlim_t>& limit_before) {
  const rlim_t before = limit_before.exchange(0);
  rlimit limit{};
  if (before == 0 || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = before;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void before_fork() { process().open_descriptors.before_fork(); }
void after_fork_in_parent() { process().open_descriptors.after_fork_in_parent(); }
void after_fork_in_child() {
  process().forks.fetch_add(1, std::memory_order_relaxed);
  process().open_descriptors.after_fork_in_child();
  give_back_limit(process().descriptor_limit_before);
}

}  // namespace

void OpenDescriptors::add(int fd) {
  const std::lock_guard lock(mutex_);
  const auto place = static_cast<std::size_t>(fd);
  if (place >= fds_.size()) fds_.resize(2 * place + 1);
  fds_[place] = true;
}

void OpenDescriptors::close(int fd) {
  const std::lock_guard lock(mutex_);
  fds_[static_cast<std::size_t>(fd)] = false;
  ::close(fd);
}

void OpenDescriptors::after_fork_in_child() {
  for (std::size_t fd = 0; fd < fds_.size(); ++fd)
    if (fds_[fd]) ::close(static_cast<int>(fd));
  fds_.clear();
  mutex_.unlock();
}

Process::Process() {
  const int error = ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  MUSTER_CHECK(error == 0, "there is no memory to watch for forks");
}

Process& process() {
  static auto* const made = new Process;
  return *made;
}

}  // namespace muster::net
