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

// What `call` gives. That a process was lost, which a script's own code raises in a step, reaches those who
// go on from it as an Exception, as from ops that C++ calls.
template <class F>
nb::object kept_recoverable(F&& call) {
  try {
    return call();
  } catch (nb::python_error& raised) {
    if (!is_peer_lost_error(raised.value())) throw;
    throw Exception(error_of(raised));
  }
}

}  // namespace muster::python
