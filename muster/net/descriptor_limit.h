// Private to net: sockets when descriptors run out.
#pragma once

#include "muster/net/host.h"

namespace muster::net {

// A stream socket, close-on-exec and non-blocking, or -1 and errno. Takes from the reserve.
int open_socket(int family);

// Whether a call failed since no descriptor, or no memory for one, is free.
bool lacks_descriptors(int error);

}  // namespace muster::net
