#include "muster/net/process.h"

namespace muster::net {

std::uint32_t fork_count() { return process().forks.load(std::memory_order_relaxed); }

ProcessDescriptor::ProcessDescriptor(int fd) : fd_(fd), fork_count_(fork_count()) {
  if (fd_ >= 0) process().open_descriptors.add(fd_);
}

ProcessDescriptor::~ProcessDescriptor() {
  if (fd_ >= 0 && fork_count_ == fork_count()) process().open_descriptors.close(fd_);
}

}  // namespace muster::net
