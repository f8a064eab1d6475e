#include "muster/net/descriptor_limit.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <utility>

#include "muster/net/process.h"

namespace muster::net {
namespace {

// Programs that close all that they might have open do it one by one.
constexpr rlim_t limit_max = 1 << 20;
constexpr std::size_t reserved_max = 8;

}  // namespace

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t wanted = std::min(limit.rlim_max, limit_max);
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  const rlimit raised{.rlim_cur = wanted, .rlim_max = limit.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &raised) != 0) return limit.rlim_cur;
  process().descriptor_limit_before = limit.rlim_cur;  // a child gets it back
  return wanted;
}

std::size_t free_descriptors() {
  rlimit limit{};
  std::error_code error;
  const std::filesystem::directory_iterator open("/proc/self/fd", error);
  if (error || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;  // not even this one could be opened
  const auto count = static_cast<rlim_t>(std::distance(begin(open), end(open)));
  return limit.rlim_cur - std::min(limit.rlim_cur, count);
}

void fill_descriptor_reserve() {
  DescriptorReserve& reserve = process().reserve;
  const std::lock_guard lock(reserve.mutex);
  if (std::exchange(reserve.filled_at_fork, fork_count()) != fork_count()) reserve.descriptors.clear();
  while (reserve.descriptors.size() < reserved_max) {
    ProcessDescriptor made(::eventfd(0, EFD_CLOEXEC));
    if (!made) return;
    reserve.descriptors.push_back(std::move(made));
  }
}

bool give_up_reserved_descriptor() {
  DescriptorReserve& reserve = process().reserve;
  const std::lock_guard lock(reserve.mutex);
  if (reserve.descriptors.empty()) return false;
  reserve.descriptors.pop_back();
  return true;
}

int open_socket(int family) {
  for (;;) {
    const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 || !lacks_descriptors(errno)) return fd;
    const int error = errno;
    if (give_up_reserved_descriptor()) continue;
    errno = error;
    return -1;
  }
}

bool lacks_descriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace muster::net
