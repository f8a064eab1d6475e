// Function: code that is traced once for each signature, and run as a cached Plan; branches and loops that
// are decided while it runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/graph/run.h"
#include "muster/graph/trace.h"
#include "muster/graph/value.h"

namespace muster::graph {

class Arenas;
class Plan;
struct Explanation;  // explanation.h

// The code. It may throw: the trace is dropped. An Exception of it is the error of the call; others pass (a
// Python exception on its way out).
using Body = std::function<Values(std::span<const Value>)>;

struct GradientOptions {
  std::vector<ParameterPtr> parameters = {};  // gradients for these, in this order
  std::vector<std::size_t> positions = {};    // and for these inputs
  bool has_aux = false;  // outputs after the first take no part in the gradient; else all are summed
  // Where it is set, the first of these are summed: of the outputs that the body gave last.
  std::function<std::size_t()> losses = {};
};

// One trace of a function.
struct TraceRecord {
  std::string signature;  // "float32 (32, 784), int32 (32,)"
  std::string reason;     // "first call", "input 0 is float32 (16, 784), was float32 (32, 784)"
  std::size_t nodes = 0;
  std::chrono::nanoseconds duration{};  // tracing and compiling
};

// "float32 (32, 784), int32 (32,): first call; 12 nodes, 3.1 ms"
std::string to_string(const TraceRecord& trace);

// A cached Plan serves a call when the inputs' types and `extra` are equal, and nothing that the trace
// depended on (cells called in it) has changed. `extra` is the front end's: all arguments that are no
// tensors. A function that is traced more than 8 times says so once, with the reason. Threads: one call at a
// time.
class Function {
 public:
  Function(std::string name, Body body);
  ~Function();

  Result<std::vector<Tensor>> call(std::span<const Tensor> inputs, std::string_view extra,
                                   const RunContext& context);
  // Makes the plan that such a call would run, unless there is one, and runs nothing.
  Result<> compile(std::span<const Tensor> inputs, std::string_view extra, const RunContext& context);
  // On values: inside a trace the body runs inline, and so it does at once while a Tape records, or in eager
  // mode when the function is one of value_and_grad; else as above, and the error of a call is thrown as an
  // Exception.
  Values operator()(std::span<const Value> inputs, std::string_view extra = {});
  Values operator()(std::span<const Value> inputs, std::string_view extra, const RunContext& context);

  // For the reason of a trace: what differs between two extras. Before the first call.
  using ExtraDifference = std::string (*)(std::string_view extra, std::string_view before);
  void tell_extras_by(ExtraDifference difference) { extra_difference_ = difference; }

  // Over several workers: each output goes to all of them. Without it only the losses of value_and_grad do,
  // and tensors without axes, as losses are; others are absent (Tensor::absence) but where they are made.
  // Before the first call.
  void replicate_outputs() { everywhere_ = true; }

  // Whether a call on values would run the body inline.
  bool runs_inline() const;

  const std::string& name() const { return name_; }
  // The first ones; trace_count() counts all.
  std::span<const TraceRecord> traces() const { return traces_; }
  std::size_t trace_count() const { return trace_count_; }
  // Of the last call; null before.
  const Plan* plan() const;
  // That plan and the traces; there must be a plan.
  Explanation explain() const;

 private:
  struct Entry;
  // What a trace gives: outputs, and which of them must lie in one buffer.
  struct Recipe {
    Values outputs;
    std::vector<OutputRange> contiguous;
    std::vector<OutputNote> notes;
  };
  using Maker = std::function<Recipe(std::span<const Value>)>;
  friend std::shared_ptr<Function> value_and_grad(std::string name, Body body, GradientOptions options);
  struct Private {};

 public:
  Function(Private, std::string name, Maker maker);

 private:
  Entry* find(std::span<const Tensor> inputs, std::string_view extra, const RunContext& context);
  Values run_plan(std::span<const Value> inputs, std::string_view extra, const RunContext& context);
  Values run_op_by_op(std::span<const Value> inputs);
  Result<Entry*> trace(std::span<const Tensor> inputs, std::string_view extra, const RunContext& context);
  void note(TraceRecord record);
  std::string reason(std::span<const Tensor> inputs, std::string_view extra, const RunContext& context) const;

  std::string name_;
  Maker maker_;
  bool differentiates_ = false;  // made by value_and_grad
  bool everywhere_ = false;      // all outputs are wanted
  bool op_by_op_ = false;        // it cannot be traced (set_runs_untraceable)
  ExtraDifference extra_difference_ = nullptr;
  std::shared_ptr<Arenas> arenas_;               // of the plans of all entries
  std::vector<std::unique_ptr<Entry>> entries_;  // the last used first
  std::vector<TraceRecord> traces_;
  std::size_t trace_count_ = 0;
};

// Sees the plans of all functions of this process, for `muster explain`.
class FunctionObserver {
 public:
  virtual ~FunctionObserver() = default;
  // `function` has a new plan, for the reason in `trace`.
  virtual void traced(const Function& function, const TraceRecord& trace) = 0;
  // The plan of `function` is about to run; `again`: an earlier call has made it.
  virtual void calling(const Function& function, bool again) = 0;
};
// Null, the default: no observer. Set before computing; borrowed from then on.
void observe_functions(FunctionObserver* observer);

// A function that gives the body's outputs, then the gradients of the inputs at `positions`, then those of
// `parameters`; the latter lie in one buffer without gaps, in order, so that one collective reduces them.
// In eager mode the body runs op by op on a Tape, and each gradient has a buffer of its own.
std::shared_ptr<Function> value_and_grad(std::string name, Body body, GradientOptions options);

// A gradient that code gives itself, instead of that of what it computes.
struct GradientRule {
  // The gradients of the inputs, in their order and of their types; undefined: none flows.
  using Gradients = std::function<Values(std::span<const Value> inputs, std::span<const Value> outputs,
                                         std::span<const Value> output_gradients)>;

  std::string name;  // whose it is, for people: "Scale 'block.scale'"
  Gradients gradients;
};

// What `body` gives, whose gradients come from `rule`. Nothing flows to what `body` uses beside `inputs`:
// parameters get zeros. The rule is called with traced values, or in eager mode with elements, once for each
// gradient that is taken; where none flows to an output it gets zeros. Gradients pass through what it
// computes. What it gives wrongly is an Exception that names the rule and the input.
Values with_own_gradient(std::span<const Value> inputs, const std::function<Values()>& body,
                         GradientRule rule);

// Whether what runs now on this thread is noted, so that gradients may be taken of it: in a trace, or on a
// tape.
bool notes_gradients();

// What `yes` or `no` gives, as `pred` (one element; bool, or a number that is not 0) says. Inside a trace
// both are traced, into a graph each, and the run computes one of them; what they use of the code around them
// becomes an input. They must give values of the same types, and neither updates parameters nor takes part in
// collectives: the other ranks may go the other way. Outside a trace one of them is called. The gradient
// passes; the branch is computed again for it.
Values cond(const Value& pred, const std::function<Values()>& yes, const std::function<Values()>& no);

// state = body(state) as long as test(state) (one element) is true; `init` is the first state. Inside a trace
// both are traced once; the types of the state stay. Outside, they are called. There is no gradient in a
// trace.
Values while_loop(const Body& test, const Body& body, std::span<const Value> init);

}  // namespace muster::graph
