// The interpreter lock for code that C++ threads run.
#pragma once

#include "python/muster/bindings/bindings.h"

namespace muster::python {

// Holds the lock. A thread that Python did not start keeps its interpreter state until it ends: Python 3.11
// maps and unmaps a stack for each new state, which takes longer than a small function does.
class InterpreterLock {
 private:
  struct StateOfThread {
    StateOfThread();
  };
  const StateOfThread state_;
  const nb::gil_scoped_acquire lock_;  // after it
};

}  // namespace muster::python
