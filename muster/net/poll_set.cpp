#include "muster/net/descriptor.h"

#include <sys/epoll.h>

#include <cerrno>

namespace muster::net {

Result<PollSet> PollSet::create() {
  ProcessDescriptor set(::epoll_create1(EPOLL_CLOEXEC));
  if (!set) return fail_errno("cannot make a set of descriptors", errno);
  return PollSet(std::move(set));
}

Result<> PollSet::add(int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  if (::epoll_ctl(set_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return fail_errno("cannot wait for a descriptor", errno);
  return {};
}

void PollSet::remove(int fd) { ::epoll_ctl(set_.get(), EPOLL_CTL_DEL, fd, nullptr); }

}  // namespace muster::net
