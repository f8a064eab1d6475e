// Tape: what ran in eager mode, so that gradients can be taken afterwards.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "muster/graph/nodes.h"
#include "muster/graph/value.h"

namespace muster::graph {

// Eager mode: cells run their code op by op at once, and value_and_grad records a Tape. Off by default. Set
// between calls, by the thread that computes.
void set_eager(bool eager);
bool is_eager();

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
    friend void note_on_tapes(const Op&, std::span<const Value>, std::span<const Value>, const Attributes&);
    Tape& tape_;
    Scope* outer_;
  };

  // dLoss/dWrt for each of `wrt`, where the losses are `losses` summed. Computes at once; what it runs is
  // noted on the tapes of the scopes around, not on this one.
  std::vector<Value> gradient(std::span<const Value> losses, std::span<const Value> wrt);

 private:
  friend void note_on_tapes(const Op&, std::span<const Value>, std::span<const Value>, const Attributes&);
  void note(const Op& op, std::span<const Value> inputs, std::span<const Value> outputs,
            const Attributes& attributes);
  ValueId id_of(const Value& value);

  Graph graph_;                // types and nodes
  std::vector<Value> values_;  // by ValueId
  std::unordered_map<const void*, ValueId> ids_;
};

// Is this thread recording?
bool is_taping();
// Whether cells run op by op now: in eager mode, and while a Tape records.
inline bool runs_op_by_op() { return is_eager() || is_taping(); }
// For apply: an op has run.
void note_on_tapes(const Op& op, std::span<const Value> inputs, std::span<const Value> outputs,
                   const Attributes& attributes);

}  // namespace muster::graph
