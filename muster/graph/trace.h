// Trace: a graph while it is being made by running code on traced values. Tape: what ran in eager mode, so
// that gradients can be taken afterwards.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "muster/graph/nodes.h"
#include "muster/graph/value.h"

namespace muster::graph {

// Something that traced code depends on without being a tensor: a cell. Its version grows whenever tracing it
// again could give another graph. Owned by whom you like: a trace keeps a token that knows when it is gone.
class Versioned {
 public:
  struct Token {
    const Versioned* object = nullptr;  // null once destroyed
  };

  Versioned() : token_(std::make_shared<Token>(Token{this})) {}
  Versioned(const Versioned&) = delete;
  Versioned& operator=(const Versioned&) = delete;
  virtual ~Versioned() { token_->object = nullptr; }

  virtual std::uint64_t tree_version() const = 0;
  // How people know it: "Network", "Dense 'fc'".
  virtual std::string description() const = 0;
  // What has changed since that stamp of next_version(), for people: "Dense 'fc': attribute 'scale' was set".
  virtual std::string change_since([[maybe_unused]] std::uint64_t stamp) const {
    return description() + " was changed";
  }
  std::shared_ptr<const Token> token() const { return token_; }

 private:
  std::shared_ptr<Token> token_;
};

// What traced code of a front end reads beside its arguments, parameters and cells: variables, attributes. A
// trace keeps it, and so does the plan that is made of it.
class Guards : public Versioned {
 public:
  // The code has run: what it changed itself is no change. Whether there is anything to look at from now on.
  virtual bool settle() = 0;
  // The code left its trace, and will run op by op from its beginning: what it did so far is put back.
  virtual void undo() = 0;
};

struct Dependency {
  std::shared_ptr<const Versioned::Token> token;
  std::uint64_t version = 0;
  std::string description;
  std::shared_ptr<Guards> guards = nullptr;  // kept, where it is those

  bool holds() const { return token->object != nullptr && token->object->tree_version() == version; }
};

// Is this thread tracing?
bool is_tracing();
// A number for an op that draws random numbers, its own within a graph; each trace of the same code gives the
// same.
std::int64_t next_random_stream();
// Notes that the trace in progress depends on `object`; nothing outside a trace.
void watch(const Versioned& object);

// Threads: made and used by one thread.
class Trace : public std::enable_shared_from_this<Trace> {
 public:
  static std::shared_ptr<Trace> begin(std::string name);
  // A trace inside of `outer`, which outlives it: what its code uses of the code around it, parameters too,
  // becomes an input, and take_borrowed() tells what of `outer` these inputs stand for, in their order.
  static std::shared_ptr<Trace> begin_inside(Trace& outer, std::string name);

  // While it lives, apply() on this thread adds nodes to `trace`. Scopes nest.
  class Scope {
   public:
    explicit Scope(Trace& trace);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Trace* outer_;
  };
  static Trace* current();

  Value input(TensorType type);
  // The place of a value in this trace: traced here, or captured now. Throws an Exception, as all below, for
  // what is of another trace or fits no rule.
  Value capture(const Value& value);
  Values add(const Op& op, std::span<const Value> inputs, const Attributes& attributes);
  // dLoss/dWrt for each of `wrt`, where the losses are `losses` summed; adds the nodes of the backward pass.
  std::vector<Value> gradient(std::span<const Value> losses, std::span<const Value> wrt);
  // From here on the gradients of `outputs` go to `inputs` by `rule`; each output was made by a node, for
  // this alone.
  void own_gradient(std::span<const Value> inputs, std::span<const Value> outputs,
                    std::shared_ptr<const GradientRule> rule);
  std::size_t own_gradient_count() const { return graph_.own_gradients.size(); }
  // Whether one from `first` on is that of `value`.
  bool has_own_gradient(ValueId value, std::size_t first) const;
  // Whether a node has made `value` since there were `first` values.
  bool makes(const Value& value, std::size_t first) const;
  std::size_t value_count() const { return graph_.values.size(); }
  // Whether a node from `first` on writes to a parameter.
  bool writes(std::size_t first) const;
  std::size_t node_count() const { return graph_.nodes.size(); }
  // What the nodes so far cost, by the measure with which the work of several workers is ordered.
  double cost() const;
  void watch(const Versioned& object);
  // Those of the outermost trace; null until they are set.
  const std::shared_ptr<Guards>& guards() const { return outer_ != nullptr ? outer_->guards() : guards_; }
  void set_guards(std::shared_ptr<Guards> guards);
  // Called before each run of what is traced, by the thread that runs it; `is_first`: the function that is
  // traced has run nothing yet. An error ends the run before its first op.
  using BeforeRun = std::function<Result<>(bool is_first)>;
  void before_run(BeforeRun hook);

  // Ends the trace.
  Graph finish(std::span<const Value> outputs, std::vector<OutputRange> contiguous = {});
  bool finished() const { return finished_; }
  std::vector<Value> take_borrowed() { return std::move(borrowed_); }
  std::vector<Dependency> take_dependencies() { return std::move(dependencies_); }
  std::vector<BeforeRun> take_before_runs() { return std::move(before_runs_); }
  std::int64_t next_random_stream() {
    return outer_ != nullptr ? outer_->next_random_stream() : random_streams_++;
  }

 private:
  explicit Trace(std::string name);
  Value make_value(TensorType type);
  Value at(ValueId id);
  Value borrow(const Value& value);

  Graph graph_;
  std::vector<Dependency> dependencies_;
  std::shared_ptr<Guards> guards_;
  std::vector<BeforeRun> before_runs_;
  bool finished_ = false;
  std::int64_t random_streams_ = 0;
  Trace* outer_ = nullptr;
  std::vector<Value> borrowed_;        // of outer_
  std::vector<ValueId> borrowed_ids_;  // the input of each
};

// Eager mode: cells run their code op by op at once, and value_and_grad records a Tape. Off by default. Set
// between calls, by the thread that computes.
void set_eager(bool eager);
bool is_eager();

// Whether a function that looks at the elements of a traced tensor (if, while, float(), asnumpy()) runs op by
// op from then on, after a warning, instead of being an error. Off by default. Set before computing.
void set_runs_untraceable(bool runs);
// Whether losses and inputs of whole numbers have gradients, and gradients flow through casts to them: rules
// are those of floating values, cut off. Off by default. Set before computing.
void set_differentiates_whole_numbers(bool differentiates);
// Whether such code runs now: op by op, but for functions of value_and_grad and optimizers in it, which are
// compiled each for itself.
bool falls_back();
// Whether what ops of this thread give counts as constant: no gradient passes. Gives what it was before.
bool set_without_gradient(bool without);
bool is_without_gradient();
// For code that a trace meets and that only runs op by op, before it throws.
void note_untraceable();

// Whether each op is looked at once it has run: the first one that gives NaN, or infinity from finite
// numbers, ends the run with an error that says what, where and of which cell. Slow, and off by default. Set
// between calls, by the thread that computes; functions are traced anew.
void set_anomaly_detection(bool detects);
bool detects_anomalies();

// What front ends add. Null: nothing.
struct AnomalyHooks {
  std::string (*line)() = nullptr;  // of the code that runs: "net.py:31"; empty: none is known
  std::string (*step)() = nullptr;  // "step 12 of worker 1"
  // The loss of a run that has one, by the thread that computes. `is_done`: the run has updated parameters
  // too.
  void (*loss)(double value, bool is_done) = nullptr;
  // What a run is given that has a loss, before it.
  void (*batch)(std::span<const Tensor> inputs) = nullptr;
  // A training step that a script calls begins, or is done already, by the thread that computes.
  void (*trains)(bool is_done) = nullptr;
};
// Set before computing.
void set_anomaly_hooks(const AnomalyHooks& hooks);
const AnomalyHooks& anomaly_hooks();

// Keeps every value that it has seen, until it is destroyed. Threads: made and used by one thread.
class Tape {
 public:
  // While it lives, ops that run on this thread are noted on `tape`, and on the tapes of outer scopes: the
  // gradient of a gradient sees everything.
  class Scope {
   public:
    explicit Scope(Tape& tape);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class Tape;
    friend void note_on_tapes(const Op&, std::span<const Value>, std::span<const Value>, const Attributes&);
    friend void own_gradient_on_tapes(std::span<const Value>, std::span<const Value>,
                                      const std::shared_ptr<const GradientRule>&);
    Tape& tape_;
    Scope* outer_;
  };

  // That records on this thread now; null: none.
  static Tape* current();
  // As those of Trace.
  bool makes(const Value& value, std::size_t first) const;
  std::size_t value_count() const { return graph_.values.size(); }

  // dLoss/dWrt for each of `wrt`, where the losses are `losses` summed. Computes at once; what it runs is
  // noted on the tapes of the scopes around, not on this one.
  std::vector<Value> gradient(std::span<const Value> losses, std::span<const Value> wrt);

 private:
  friend void note_on_tapes(const Op&, std::span<const Value>, std::span<const Value>, const Attributes&);
  friend void own_gradient_on_tapes(std::span<const Value>, std::span<const Value>,
                                    const std::shared_ptr<const GradientRule>&);
  void note(const Op& op, std::span<const Value> inputs, std::span<const Value> outputs,
            const Attributes& attributes);
  ValueId id_of(const Value& value);

  Graph graph_;                // types and nodes
  std::vector<Value> values_;  // by ValueId
  std::unordered_map<const void*, ValueId> ids_;
};

// The next gradient that this thread's eager code takes goes on with this tape, and with what it has
// recorded.
void resume_tape(std::shared_ptr<Tape> tape);
// That tape, once; else a new one.
std::shared_ptr<Tape> resumed_tape();
// Is this thread recording?
bool is_taping();
// Whether cells run op by op now: in eager mode, and while a Tape records.
inline bool runs_op_by_op() { return is_eager() || is_taping(); }
// For apply: an op has run.
void note_on_tapes(const Op& op, std::span<const Value> inputs, std::span<const Value> outputs,
                   const Attributes& attributes);
// Trace::own_gradient, of the tapes that record.
void own_gradient_on_tapes(std::span<const Value> inputs, std::span<const Value> outputs,
                           const std::shared_ptr<const GradientRule>& rule);

}  // namespace muster::graph
