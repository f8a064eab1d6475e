#include "muster/net/accepting.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "muster/net/descriptor_limit.h"

namespace muster::net {
namespace {

constexpr int passed_over_max = 64;

// Errors of the one connection, not of the listener: accept(2) reports what its network has said.
bool is_of_one_peer(int error) {
  constexpr std::array errors{EINTR,  ECONNABORTED, EPROTO,       EPERM,      ENETDOWN,   ENOPROTOOPT,
                              ENONET, EHOSTDOWN,    EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH};
  return std::ranges::find(errors, error) != errors.end();
}

// Where no descriptor is free, accept() says so even if no connection waits.
bool connection_waits(int listening) {
  pollfd polled{.fd = listening, .events = POLLIN, .revents = 0};
  return ::poll(&polled, 1, 0) > 0;
}

}  // namespace

Accepted accept_next(int listening, SocketAddress* from) {
  for (int passed_over = 0; passed_over < passed_over_max; ++passed_over) {
    if (from != nullptr) from->size_bytes = sizeof from->storage;
    const int fd = ::accept4(listening, from == nullptr ? nullptr : from->get(),
                             from == nullptr ? nullptr : &from->size_bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) return {.fd = fd};
    if (lacks_descriptors(errno)) return {.lacks_descriptor = connection_waits(listening)};
    if (!is_of_one_peer(errno)) break;
  }
  return {};
}

}  // namespace muster::net
