// Private to net: state that a process has once. The module has no other state that changes (ADR 27).
#pragma once

#include <sys/resource.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "muster/net/descriptor.h"

namespace muster::net {

// The descriptors to close in a child, by number: a flood of unauthorized peers adds and removes thousands a
// second.
class OpenDescriptors {
 public:
  void add(int fd);
  void close(int fd);

  // Around fork(): the lock is held across it, so that the child finds the set whole.
  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  void after_fork_in_child();

 private:
  std::mutex mutex_;
  std::vector<bool> fds_;
};

// Descriptors that are kept for when no other is free.
struct DescriptorReserve {
  std::mutex mutex;
  std::vector<ProcessDescriptor> descriptors;
  std::uint32_t filled_at_fork = 0;  // those of a parent are none of a child's
};

// The places that the listeners of the process have for unauthenticated peers.
struct UnauthenticatedPlaces {
  std::mutex mutex;
  std::size_t taken = 0;
};

struct Process {
  Process();

  std::atomic<std::uint32_t> forks{0};
  OpenDescriptors open_descriptors;
  std::atomic<rlim_t> descriptor_limit_before{0};  // 0: the limit is as it was
  DescriptorReserve reserve;
  UnauthenticatedPlaces unauthenticated_places;
};

// Never destroyed: descriptors with static lifetime may outlive any order.
Process& process();

}  // namespace muster::net
