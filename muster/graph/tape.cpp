#include "muster/graph/trace.h"

#include <utility>

#include "muster/graph/anomaly.h"
#include "muster/graph/backward.h"
#include "muster/graph/origin.h"
#include "muster/graph/own_gradient.h"
#include "muster/graph/thread_state.h"

namespace muster::graph {

void set_eager(bool eager) { process_state().is_eager = eager; }
bool is_eager() { return process_state().is_eager; }
void set_runs_untraceable(bool runs) { process_state().runs_untraceable = runs; }
void set_differentiates_whole_numbers(bool differentiates) {
  process_state().differentiates_whole_numbers = differentiates;
}
bool falls_back() { return process_state().falls_back; }
void note_untraceable() { thread_state().looked_at_traced = true; }
bool set_without_gradient(bool without) { return std::exchange(thread_state().without_gradient, without); }
bool is_without_gradient() { return thread_state().without_gradient; }
void resume_tape(std::shared_ptr<Tape> tape) { thread_state().resumed = std::move(tape); }
std::shared_ptr<Tape> resumed_tape() {
  std::shared_ptr<Tape> tape = std::exchange(thread_state().resumed, nullptr);
  return tape == nullptr ? std::make_shared<Tape>() : tape;
}
bool is_taping() { return thread_state().tape != nullptr; }

Tape::Scope::Scope(Tape& tape) : tape_(tape), outer_(std::exchange(thread_state().tape, this)) {}
Tape::Scope::~Scope() { thread_state().tape = outer_; }

void note_on_tapes(const Op& op, std::span<const Value> inputs, std::span<const Value> outputs,
                   const Attributes& attributes) {
  for (Tape::Scope* scope = thread_state().tape; scope != nullptr; scope = scope->outer_)
    scope->tape_.note(op, inputs, outputs, attributes);
}

Tape* Tape::current() {
  const Scope* const scope = thread_state().tape;
  return scope == nullptr ? nullptr : &scope->tape_;
}

bool Tape::makes(const Value& value, std::size_t first) const {
  const auto found = ids_.find(value.identity());
  return found != ids_.end() && found->second >= first && makes_value(graph_, found->second);
}

void own_gradient_on_tapes(std::span<const Value> inputs, std::span<const Value> outputs,
                           const std::shared_ptr<const GradientRule>& rule) {
  for (Tape::Scope* scope = thread_state().tape; scope != nullptr; scope = scope->outer_) {
    Tape& tape = scope->tape_;
    OwnGradient made{.end = tape.graph_.nodes.size(), .inputs = {}, .outputs = {}, .rule = rule};
    for (const Value& input : inputs) made.inputs.push_back(tape.id_of(input));
    for (const Value& output : outputs) made.outputs.push_back(tape.id_of(output));
    tape.graph_.own_gradients.push_back(std::move(made));
  }
}

namespace {

// Views of the memory of a parameter that is about to be written become views of the copy. The old ones stay
// on the tape: their identities must not be given to others.
void keep_views(std::vector<Value>& values, Graph& graph, const Value& written, const Tensor& copy) {
  const auto& memory = written.parameter()->storage().buffer();
  for (std::size_t i = 0, count = values.size(); i < count; ++i) {
    if (!values[i].is_concrete() || values[i].tensor().buffer() != memory) continue;
    const Value kept(copy.reshaped(values[i].shape()));
    values.push_back(std::exchange(values[i], kept));
    graph.values.push_back(kept.type());
  }
}

}  // namespace

ValueId Tape::id_of(const Value& value) {
  const auto [found, is_new] = ids_.try_emplace(value.identity(), static_cast<ValueId>(values_.size()));
  if (is_new) {
    values_.push_back(value);
    graph_.values.push_back(value.type());
  }
  return found->second;
}

void Tape::note(const Op& op, std::span<const Value> inputs, std::span<const Value> outputs,
                const Attributes& attributes) {
  Node node{.op = &op, .inputs = {}, .outputs = {}, .attributes = attributes, .origin = current_origin()};
  for (const Value& input : inputs) node.inputs.push_back(id_of(input));
  for (const Value& output : outputs) node.outputs.push_back(id_of(output));
  if (op.name == "snapshot") keep_views(values_, graph_, inputs[0], outputs[0].tensor());
  graph_.nodes.push_back(std::move(node));
}

std::vector<Value> Tape::gradient(std::span<const Value> losses, std::span<const Value> wrt) {
  require_differentiable(losses, "a loss");
  require_differentiable(wrt, "what a gradient is wanted for");
  for (const Value& loss : losses)
    if (loss.is_concrete()) look_at_loss(loss.tensor(), false);
  std::vector<ValueId> loss_ids, wrt_ids;
  for (const Value& value : losses) loss_ids.push_back(id_of(value));
  for (const Value& value : wrt) wrt_ids.push_back(id_of(value));
  return backward(graph_, loss_ids, wrt_ids, [this](ValueId id) { return values_[id]; });
}

}  // namespace muster::graph
