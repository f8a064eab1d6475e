// Python exceptions that cross C++ code which knows only Result: an Error carries a ticket for the exception,
// and raising turns the ticket back into the exception itself, with its own type and traceback.
#pragma once

#include "python/muster/bindings/bindings.h"

namespace muster::python {

// Keeps `exception` until its Error is raised and returns that Error. Interpreter lock held; any thread.
Error error_of(nb::python_error& exception);

// Makes the exception whose ticket `error` carries the one that is raised, if it carries one that has not
// been raised yet. Says whether.
bool set_kept_exception(const Error& error);

// Whether `exception` is a PeerLostError.
bool is_peer_lost_error(nb::handle exception);

}  // namespace muster::python
