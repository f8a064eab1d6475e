// Public header of `net`: addresses, the one frame format of everything that Muster sends over a stream and
// the bytes inside a frame, what protects them on their way, blocking sockets with deadlines, memory that the
// processes of a host share, descriptors that close themselves.
//
// Ownership: plain values; sockets, listeners, segments, descriptors and reservations belong to the object
// that holds them. Threads: free functions may be called from any thread, an object from one thread at a
// time, except where its header says otherwise.
#pragma once

#include "muster/net/address.h"                // IWYU pragma: export
#include "muster/net/bytes.h"                  // IWYU pragma: export
#include "muster/net/certificates.h"           // IWYU pragma: export
#include "muster/net/descriptor.h"             // IWYU pragma: export
#include "muster/net/descriptor_limit.h"       // IWYU pragma: export
#include "muster/net/digest.h"                 // IWYU pragma: export
#include "muster/net/frame.h"                  // IWYU pragma: export
#include "muster/net/futex.h"                  // IWYU pragma: export
#include "muster/net/host_key.h"               // IWYU pragma: export
#include "muster/net/look_up.h"                // IWYU pragma: export
#include "muster/net/loop.h"                   // IWYU pragma: export
#include "muster/net/poll_set.h"               // IWYU pragma: export
#include "muster/net/port_reservation.h"       // IWYU pragma: export
#include "muster/net/process_descriptor.h"     // IWYU pragma: export
#include "muster/net/process_watch.h"          // IWYU pragma: export
#include "muster/net/rejected_peers.h"         // IWYU pragma: export
#include "muster/net/security.h"               // IWYU pragma: export
#include "muster/net/segment.h"                // IWYU pragma: export
#include "muster/net/small_file.h"             // IWYU pragma: export
#include "muster/net/socket.h"                 // IWYU pragma: export
#include "muster/net/unauthenticated_peers.h"  // IWYU pragma: export
#include "muster/net/wait.h"                   // IWYU pragma: export
