// The door of `net`: addresses, the one frame format of everything that Muster sends over a stream, and the
// bytes inside a frame.
//
// Ownership: plain values. Threads: every function may be called from any thread.
#pragma once

#include "muster/net/address.h"   // IWYU pragma: export
#include "muster/net/bytes.h"     // IWYU pragma: export
#include "muster/net/frame.h"     // IWYU pragma: export
#include "muster/net/host_key.h"  // IWYU pragma: export
