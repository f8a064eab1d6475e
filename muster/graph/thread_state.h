// Private to graph: all that it keeps between calls, of each thread and of the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "muster/graph/cost/graph_observer.h"
#include "muster/graph/function.h"
#include "muster/graph/host_function.h"
#include "muster/graph/run.h"
#include "muster/graph/scopes.h"
#include "muster/graph/served.h"
#include "muster/graph/trace.h"

namespace muster::graph {

struct EagerPlans;  // execution/execute.cpp
class Backward;     // origin.h

// What a thread is in the middle of. A scope sets its field when it begins and puts back what was there when
// it ends; null: outside any.
struct ThreadState {
  const RunContext* context = nullptr;
  Trace* trace = nullptr;
  Tape::Scope* tape = nullptr;
  std::shared_ptr<Tape> resumed = nullptr;
  const Precision* precision = nullptr;
  PlacementPtr placement;
  std::uint32_t recompute = 0;         // the number of the RecomputeScope
  std::uint32_t recompute_scopes = 0;  // so far
  MicroBatchScope* micro_batch = nullptr;
  FailureWatch* failure_watch = nullptr;
  const Versioned* cell = nullptr;  // whose code runs
  const Backward* backward = nullptr;
  bool without_gradient = false;  // what runs counts as constant
  bool may_fall_back = false;     // the function that runs may run op by op instead of being traced
  bool looked_at_traced = false;  // since a trace began outside any other: at the elements of a traced value
  // How many random streams were given: outside any ContextScope, then in each, the innermost last. Eager
  // code under one context draws what its trace would draw.
  std::vector<std::int64_t> random_streams{0};
  std::shared_ptr<EagerPlans> eager_plans;  // of single ops, made on first use
  std::shared_ptr<Buffer> scratch;          // of single ops, one after the other; null while one uses it
};

// Every op asks, so it takes one load: the state itself would take a call and a look at its guard.
extern thread_local constinit ThreadState* this_thread_state [[gnu::tls_model("initial-exec")]];
ThreadState& make_thread_state();
inline ThreadState& thread_state() {
  return this_thread_state != nullptr ? *this_thread_state : make_thread_state();
}

// The hooks are set before computing; the counters are for any thread.
struct ProcessState {
  ContextProvider context_provider = nullptr;
  FunctionObserver* observer = nullptr;
  GraphObserver* graph_observer = nullptr;
  bool is_eager = false;
  bool falls_back = false;
  bool runs_untraceable = false;
  bool differentiates_whole_numbers = false;
  bool detects_anomalies = false;
  AnomalyHooks anomaly_hooks;
  std::atomic<std::uint64_t> versions = 0;
  std::atomic<std::uint64_t> parameter_writes = 0;
  std::atomic<WriteObserver> write_observer = nullptr;
  std::mutex namesakes_mutex;
  bool tells_namesakes_apart = false;
  std::unordered_map<std::string, std::uint32_t> namesakes;  // how many parameters had a name so far
  std::mutex host_functions_mutex;
  std::deque<HostFunction> host_functions;  // by number; kernels keep references
  std::deque<ServedParameter> served;       // by number
  ServedCalls served_calls = {};            // of `train`
  std::once_flag has_warned_of_copies;      // of gradients, where workers of a host share no memory
};
ProcessState& process_state();

}  // namespace muster::graph
