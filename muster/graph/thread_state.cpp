#include "muster/graph/thread_state.h"

namespace muster::graph {

thread_local constinit ThreadState* this_thread_state = nullptr;

ThreadState& make_thread_state() {
  thread_local ThreadState state;
  this_thread_state = &state;
  return state;
}

ProcessState& process_state() {
  static auto* state = new ProcessState;  // kernels may run until the process ends
  return *state;
}

}  // namespace muster::graph
