// Private to net: addresses as the system has them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "muster/base/base.h"
#include "muster/net/address.h"

namespace muster::net {

// Why a connection to `peer` could not be made, by the error number of the attempt: nothing listens there
// (Code::not_found), there is no way to it (Code::io), nothing answered (Code::timeout).
Error connect_error(const Address& peer, int error_number);

// The system's form of an address.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size_bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};
Result<SocketAddress> to_socket_address(const Address& address);
// An IPv4 address that arrived through an IPv6 socket becomes plain IPv4.
Result<Address> from_socket_address(const SocketAddress& address);

}  // namespace muster::net
