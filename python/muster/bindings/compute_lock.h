// One thread at a time for plans: what is known of a cell's traces is not made for several.
#pragma once

#include <mutex>
#include <thread>

namespace muster::python {

struct Computing {
  std::mutex mutex;
  std::thread::id owner;  // this and what follows are guarded by the interpreter lock
  int depth = 0;
  int waiting = 0;
};

// Held by a thread while it traces and runs. Another thread of the script waits without the interpreter lock.
// Made and destroyed with it.
class ComputeLock {
 public:
  ComputeLock();
  ComputeLock(const ComputeLock&) = delete;
  ComputeLock& operator=(const ComputeLock&) = delete;
  ~ComputeLock();
};

}  // namespace muster::python
