#include "muster/net/host.h"

#include <fmt/format.h>

#include <cerrno>

#include "muster/net/address.h"
#include "muster/net/socket_address.h"

namespace muster::net {

Result<PortReservation> PortReservation::open(const std::string& ip, std::uint16_t port) {
  MUSTER_TRY(SocketAddress wanted, to_socket_address({.ip = ip, .port = port}));
  const auto failed = [&] {
    return fail_errno(
        fmt::format("cannot reserve {} of {}", port == 0 ? "a port" : fmt::format("port {}", port), ip),
        errno);
  };

  // Bound but not listening: others that set SO_REUSEADDR too may bind and listen, and the kernel keeps the
  // port out of its own choices.
  Descriptor socket(::socket(wanted.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return failed();
  const int on = 1;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return failed();
  if (::bind(socket.get(), wanted.get(), wanted.size_bytes) != 0) return failed();

  SocketAddress bound;
  bound.size_bytes = sizeof bound.storage;
  if (::getsockname(socket.get(), bound.get(), &bound.size_bytes) != 0) return failed();
  MUSTER_TRY(const Address address, from_socket_address(bound));
  return PortReservation(std::move(socket), address.port);
}

}  // namespace muster::net
