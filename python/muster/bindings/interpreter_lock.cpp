#include "python/muster/bindings/interpreter_lock.h"

#include <unistd.h>

#include <mutex>
#include <utility>
#include <vector>

#include "python/muster/bindings/process.h"

namespace muster::python {
namespace {

std::vector<PyThreadState*> take_ended_states() {
  EndedStates& ended = process().ended_states;
  const std::lock_guard lock(ended.mutex);
  // A forked child has no such threads, and Python has deleted their states there.
  if (ended.process != getpid()) ended.states.clear();
  return std::exchange(ended.states, {});
}

class KeptState {
 public:
  KeptState() {
    PyGILState_Ensure();
    for (PyThreadState* const state : take_ended_states()) {
      PyThreadState_Clear(state);
      PyThreadState_Delete(state);
    }
    state_ = PyEval_SaveThread();
  }
  KeptState(const KeptState&) = delete;
  KeptState& operator=(const KeptState&) = delete;
  // Without the interpreter lock: who joins this thread may hold it, and the interpreter may be ending.
  ~KeptState() {
    EndedStates& ended = process().ended_states;
    const std::lock_guard lock(ended.mutex);
    ended.process = getpid();
    ended.states.push_back(state_);
  }

 private:
  PyThreadState* state_;
};

}  // namespace

InterpreterLock::StateOfThread::StateOfThread() {
  if (PyGILState_GetThisThreadState() != nullptr) return;
  thread_local const KeptState kept;
}

}  // namespace muster::python
