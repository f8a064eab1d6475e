// What a process has once for its Python objects. The bindings have no other state that changes (ADR 27).
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/compute_lock.h"

namespace muster::python {

class Pass;
class PythonParameter;

// Exceptions of our own, made with the module and alive until the process ends.
struct ExceptionClasses {
  PyObject* invalid_argument = nullptr;  // null: ValueError
  PyObject* peer_lost = nullptr;
  PyObject* job_aborted = nullptr;
  PyObject* refused = nullptr;
  PyObject* corrupt_data = nullptr;
};

// Who asked last whether a signal has come, and when. Any thread; where two ask at once, one more may look.
struct SignalLook {
  std::atomic<std::thread::id> thread;
  std::atomic<std::chrono::steady_clock::time_point> at;
};

// Interpreter states of C++ threads that have ended; the next such thread deletes them. Any thread.
struct EndedStates {
  std::mutex mutex;
  pid_t process = 0;  // that they were made in
  std::vector<PyThreadState*> states;
};

// tensor[index], kept so that x[i][j] = v reaches x. The references are weak.
struct Part {
  nb::object part = {};
  nb::object whole = {};
  nb::object index = {};
};

// Guarded by the interpreter lock where nothing else is said.
struct Process {
  ExceptionClasses exceptions;
  std::map<std::uint64_t, nb::object> kept_exceptions;  // by ticket; the oldest first
  std::uint64_t next_ticket = 0;
  int init_exit_code = 0;              // that the failure of init() asks for; 0 while it has not failed
  std::set<std::string> effects_told;  // of traced code, each once
  std::unordered_map<const graph::Parameter*, PythonParameter*> parameters;  // objects that there are
  std::array<Part, 2> last_parts;                                            // the last one first
  nb::object hook_caller;                                                    // of cells with hooks
  std::array<PyObject*, all_dtypes.size()> dtypes{};                         // kept, by number
  PyObject* tensor_words = nullptr;     // kept, as the check; both null until `mindspore` is imported
  setattrofunc set_on_class = nullptr;  // nanobind's, of the library's classes
  nb::handle optimizer_check;           // called with a class' name and settings before an optimizer is made
  nb::handle input_order;               // called with a cell and inputs by name: all by place, or None
  std::set<Pass*> passes;               // under way
  bool replicates_outputs = false;      // of functions that are made from now on, over the workers
  bool merges_calls = false;            // of a cell and the one whose gradient is taken, in a trace
  int traced_gradients = 0;             // functions of value_and_grad that are called in a trace now
  std::uint64_t transform_calls = 0;    // of transforms by themselves
  Computing computing;
  SignalLook signals;
  EndedStates ended_states;
  std::atomic<bool> asks_for_stacks = false;  // a thread waits for the interpreter lock; any thread
};

// Never destroyed: objects may end after the interpreter.
Process& process();

}  // namespace muster::python
