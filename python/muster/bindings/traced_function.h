// Python code that is traced once for each signature and then runs as a cached plan, without Python.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "muster/graph/graph.h"
#include "python/muster/bindings/arguments.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/results.h"

namespace muster::python {

// A function that returns what its body does, on all workers where the script asked for that.
std::shared_ptr<graph::Function> function_around(std::string name, graph::Body body);

class TracedFunction {
 public:
  // The code; called with (args, kwargs) whose tensors are traced.
  using Code = std::function<nb::object(nb::handle, nb::handle)>;
  // Makes the graph function around the body.
  using Maker = std::function<std::shared_ptr<graph::Function>(graph::Body)>;

  struct Answer {
    nb::object result;                 // what the code returned
    std::vector<graph::Value> beside;  // what the graph function adds to it: gradients
  };

  TracedFunction(std::string name, Code code, const Maker& maker);
  TracedFunction(const TracedFunction&) = delete;
  TracedFunction& operator=(const TracedFunction&) = delete;

  // Inside a trace, and op by op in eager mode, the code runs inline; else as a plan, while other threads
  // may have the interpreter lock.
  Answer call(const Arguments& arguments);

  const graph::Function& function() const { return *function_; }
  // How many of the values that the body gave last are the result's; those behind them are for arguments
  // that the code changes.
  std::size_t result_count() const;

 private:
  // A call in progress.
  struct Call {
    const Arguments& arguments;
    bool is_inline = false;
    std::shared_ptr<const CallForm> form = nullptr;  // once the code has run
  };
  class CallScope;

  Call* call_of_this_thread() const;
  graph::Values body(std::span<const graph::Value> inputs);
  graph::Values run(const Call& call, std::string_view signature);
  graph::Values run_plan(Call& call);
  const std::string& signature_of(const Arguments& arguments);

  std::string name_;
  Code code_;
  std::shared_ptr<graph::Function> function_;
  // Calls in progress and their threads, for the body; the innermost last. Guarded by the interpreter lock,
  // as all here.
  std::vector<std::pair<std::thread::id, Call*>> calls_;

  // What the code returned has one form for each plan.
  std::unordered_map<const graph::Plan*, std::shared_ptr<const CallForm>> forms_;
  std::vector<nb::object> identities_;  // objects whose addresses are in the signatures of traces

  // Of the last call; calls with tensors alone under the same context share it.
  std::string signature_;
  bool signature_is_plain_ = false;
  std::uint64_t signature_context_ = 0;
};

}  // namespace muster::python
