// Result of accepting the next connection of a listening socket. Private to net.
#pragma once

#include "muster/net/address.h"

namespace muster::net {

struct Accepted {
  int fd = -1;                    // of nobody yet, close-on-exec and non-blocking; -1: nobody waits
  bool lacks_descriptor = false;  // somebody waits, and there is no descriptor or memory: try again later
};

// Who gave up while it waited is passed over. `from` may be null.
Accepted accept_next(int listening, SocketAddress* from);

}  // namespace muster::net
