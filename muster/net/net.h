// Public header of `net`: addresses, the one frame format of everything that Muster sends over a stream and
// the bytes inside a frame, what protects them on their way, blocking sockets with deadlines, memory that the
// processes of a host share, descriptors that close themselves.
//
// Ownership: plain values; sockets, listeners, segments, descriptors and reservations belong to the object
// that holds them. Threads: free functions may be called from any thread, an object from one thread at a
// time, except where its header says otherwise.
#pragma once

#include "muster/net/address.h"                // IWYU pragma: export
#include "muster/net/credentials.h"            // IWYU pragma: export
#include "muster/net/descriptor.h"             // IWYU pragma: export
#include "muster/net/frame.h"                  // IWYU pragma: export
#include "muster/net/host.h"                   // IWYU pragma: export
#include "muster/net/loop.h"                   // IWYU pragma: export
#include "muster/net/security.h"               // IWYU pragma: export
#include "muster/net/shared_memory.h"          // IWYU pragma: export
#include "muster/net/socket.h"                 // IWYU pragma: export
#include "muster/net/unauthenticated_peers.h"  // IWYU pragma: export
