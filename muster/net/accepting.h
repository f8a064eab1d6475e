// Result of accepting the next connection of a listening socket. Private to net.
#pragma once

#include "muster/net/address.h"
#include "muster/net/socket_address.h"

namespace muster::net {

constexpr int backlog = 4096;  // of a listening socket: connections that wait to be accepted

struct Accepted {
  int fd = -1;                    // not owned yet, close-on-exec and non-blocking; -1: no connection waits
  bool lacks_descriptor = false;  // a connection waits, and there is no descriptor or memory: try again later
};

// A peer that gave up while it waited is skipped. `from` may be null.
Accepted accept_next(int listening, SocketAddress* from);

}  // namespace muster::net
