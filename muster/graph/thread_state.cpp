#include "muster/graph/thread_state.h"

namespace muster::graph {

ThreadState& thread_state() {
  thread_local ThreadState state;
  return state;
}

ProcessState& process_state() {
  static ProcessState state;
  return state;
}

}  // namespace muster::graph
