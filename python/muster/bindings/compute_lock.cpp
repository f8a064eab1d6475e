#include "python/muster/bindings/compute_lock.h"

#include <pthread.h>

#include <new>

#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/process.h"

namespace muster::python {
namespace {

// The threads of the process that was forked are not here to unlock it.
void begin_anew_in_child() {
  Computing& computing = process().computing;
  new (&computing.mutex) std::mutex;
  computing.waiting = 0;
  if (computing.depth > 0 && computing.owner == std::this_thread::get_id())
    computing.mutex.lock();
  else
    computing.depth = 0;
}

}  // namespace

ComputeLock::ComputeLock() {
  static const int watches_forks = pthread_atfork(nullptr, nullptr, &begin_anew_in_child);
  static_cast<void>(watches_forks);
  Computing& computing = process().computing;
  if (computing.depth > 0 && computing.owner == std::this_thread::get_id()) {
    ++computing.depth;
    return;
  }
  if (computing.waiting > 0 ||
      !computing.mutex.try_lock()) {  // one that waits comes before one that comes again
    ++computing.waiting;
    {
      const nb::gil_scoped_release unlocked;
      computing.mutex.lock();
    }
    --computing.waiting;
  }
  computing.owner = std::this_thread::get_id();
  computing.depth = 1;
}

ComputeLock::~ComputeLock() {
  Computing& computing = process().computing;
  if (--computing.depth == 0) computing.mutex.unlock();
}

}  // namespace muster::python
