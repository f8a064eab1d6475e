#include "muster/graph/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "muster/graph/backward.h"
#include "muster/graph/kernel.h"
#include "muster/graph/origin.h"
#include "muster/graph/own_gradient.h"
#include "muster/graph/partition/order.h"
#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/uses.h"
#include "muster/graph/scopes.h"
#include "muster/graph/thread_state.h"

namespace muster::graph {
namespace {

bool same_elements(const Tensor& a, const Tensor& b) {
  return a.buffer() == b.buffer() && a.offset_bytes() == b.offset_bytes() && a.dtype() == b.dtype() &&
         a.shape() == b.shape();
}

// What nodes have read, since it was last kept, of the memory that `written` lies in.
std::vector<ValueId> read_so_far(const Graph& graph, ValueId written) {
  const std::vector<ValueId> roots = roots_of(graph);
  std::vector<ValueId> read;
  for (const Node& node : graph.nodes) {
    if (node.op->sharing == Sharing::view) continue;
    for (std::size_t i = node.op->sharing == Sharing::in_place ? 1 : 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (roots[id] != roots[written]) continue;
      std::erase(read, id);
      if (node.op->name != "snapshot") read.push_back(id);
    }
  }
  return read;
}

}  // namespace

bool is_tracing() { return Trace::current() != nullptr; }

void watch(const Versioned& object) {
  if (Trace* const trace = Trace::current()) trace->watch(object);
}

Trace::Trace(std::string name) { graph_.name = std::move(name); }

std::shared_ptr<Trace> Trace::begin(std::string name) {
  return std::shared_ptr<Trace>(new Trace(std::move(name)));
}

std::shared_ptr<Trace> Trace::begin_inside(Trace& outer, std::string name) {
  auto made = begin(std::move(name));
  made->outer_ = &outer;
  return made;
}

Trace::Scope::Scope(Trace& trace) : outer_(std::exchange(thread_state().trace, &trace)) {}
Trace::Scope::~Scope() { thread_state().trace = outer_; }
Trace* Trace::current() { return thread_state().trace; }

Value Trace::at(ValueId id) { return Value(graph_.values[id], {shared_from_this(), id}); }

Value Trace::make_value(TensorType type) {
  graph_.values.push_back(std::move(type));
  return at(static_cast<ValueId>(graph_.values.size() - 1));
}

Value Trace::input(TensorType type) {
  Value made = make_value(std::move(type));
  graph_.inputs.push_back(made.place().id);
  return made;
}

Value Trace::capture(const Value& value) {
  if (!value.defined()) return value;
  if (value.is_traced() && value.place().trace.get() == this) return value;
  if (outer_ != nullptr) return borrow(value);
  if (value.is_traced()) {
    throw Exception(Code::invalid_argument,
                    fmt::format("a tensor of another graph ({}) was used while '{}' was traced: it was "
                                "probably kept in an attribute or a list by an earlier call",
                                to_string(value.type()), graph_.name));
  }
  if (value.is_parameter()) {
    for (const auto& [id, parameter] : graph_.parameters)
      if (parameter == value.parameter()) return at(id);
    Value made = make_value(value.type());
    graph_.parameters.emplace_back(made.place().id, value.parameter());
    return made;
  }
  for (const auto& [id, tensor] : graph_.captured)
    if (same_elements(tensor, value.tensor())) return at(id);
  Value made = make_value(value.type());
  graph_.captured.emplace_back(made.place().id, value.tensor());
  return made;
}

Value Trace::borrow(const Value& value) {
  const Value outside = outer_->capture(value);
  for (std::size_t i = 0; i < borrowed_.size(); ++i)
    if (borrowed_[i].place().id == outside.place().id) return at(borrowed_ids_[i]);
  Value made = input(outside.type());
  borrowed_.push_back(outside);
  borrowed_ids_.push_back(made.place().id);
  return made;
}

Values Trace::add(const Op& op, std::span<const Value> inputs, const Attributes& attributes) {
  MUSTER_CHECK(!finished_, "a node was added to a finished graph");
  if (is_write_of_code(op)) {
    const ValueId written = capture(inputs[0]).place().id;
    for (const ValueId id : read_so_far(graph_, written)) {
      const Value read = at(id);
      add(*find_op("snapshot"), {&read, 1}, {});
    }
  }
  Node node{.op = &op,
            .inputs = {},
            .outputs = {},
            .attributes = attributes,
            .placement = current_placement(),
            .origin = current_origin(),
            .recompute = current_recompute()};
  std::vector<TensorType> types;
  for (const Value& input : inputs) {
    const Value captured = capture(input);
    node.inputs.push_back(captured.place().id);
    types.push_back(captured.type());
  }
  std::vector<TensorType> inferred = op.infer({types, {}, attributes}).value();
  Values made;
  for (TensorType& type : inferred) {
    made.push_back(make_value(std::move(type)));
    node.outputs.push_back(made.back().place().id);
  }
  graph_.nodes.push_back(std::move(node));
  return made;
}

std::vector<Value> Trace::gradient(std::span<const Value> losses, std::span<const Value> wrt) {
  const Scope scope(*this);
  const auto places = [this](std::span<const Value> values, std::string_view what) {
    std::vector<Value> captured;
    for (const Value& value : values) captured.push_back(capture(value));
    require_differentiable(captured, what);
    std::vector<ValueId> ids;
    for (const Value& value : captured) ids.push_back(value.place().id);
    return ids;
  };
  const std::vector<ValueId> loss_ids = places(losses, "a loss");
  const std::vector<ValueId> wrt_ids = places(wrt, "what a gradient is wanted for");
  graph_.losses.insert(graph_.losses.end(), loss_ids.begin(), loss_ids.end());
  fuse_rotary(graph_, wrt_ids);
  fuse_attention(graph_, wrt_ids);  // its gradient needs none of the values between
  fuse_norms(graph_, wrt_ids);
  reorder_products(graph_, wrt_ids);
  return backward(graph_, loss_ids, wrt_ids, [this](ValueId id) { return at(id); });
}

void Trace::own_gradient(std::span<const Value> inputs, std::span<const Value> outputs,
                         std::shared_ptr<const GradientRule> rule) {
  OwnGradient made{.end = graph_.nodes.size(), .inputs = {}, .outputs = {}, .rule = std::move(rule)};
  for (const Value& input : inputs) made.inputs.push_back(capture(input).place().id);
  for (const Value& output : outputs) made.outputs.push_back(capture(output).place().id);
  graph_.own_gradients.push_back(std::move(made));
}

bool Trace::has_own_gradient(ValueId value, std::size_t first) const {
  return std::any_of(graph_.own_gradients.begin() + static_cast<std::ptrdiff_t>(first),
                     graph_.own_gradients.end(), [value](const OwnGradient& own) {
                       return std::find(own.outputs.begin(), own.outputs.end(), value) != own.outputs.end();
                     });
}

bool Trace::makes(const Value& value, std::size_t first) const {
  return value.is_traced() && value.place().trace.get() == this && value.place().id >= first &&
         makes_value(graph_, value.place().id);
}

bool Trace::writes(std::size_t first) const {
  return std::any_of(
      graph_.nodes.begin() + static_cast<std::ptrdiff_t>(first), graph_.nodes.end(),
      [](const Node& node) { return node.op->sharing == Sharing::in_place || !node.op->written.empty(); });
}

double Trace::cost() const {
  double cost = 0;
  for (const Node& node : graph_.nodes) cost += cost_of(graph_, node);
  return cost;
}

void Trace::watch(const Versioned& object) {
  if (outer_ != nullptr) return outer_->watch(object);
  const auto token = object.token();
  for (const Dependency& known : dependencies_)
    if (known.token == token) return;
  dependencies_.push_back({token, object.tree_version(), object.description()});
}

void Trace::set_guards(std::shared_ptr<Guards> guards) {
  if (outer_ != nullptr) return outer_->set_guards(std::move(guards));
  guards_ = std::move(guards);
}

void Trace::before_run(BeforeRun hook) {
  if (outer_ != nullptr) return outer_->before_run(std::move(hook));
  before_runs_.push_back(std::move(hook));
}

Graph Trace::finish(std::span<const Value> outputs, std::vector<OutputRange> contiguous) {
  for (const Value& output : outputs) {
    const Value captured = capture(output);
    if (!captured.defined())
      throw Exception(Code::invalid_argument, fmt::format("an output of '{}' has no value", graph_.name));
    graph_.outputs.push_back(captured.place().id);
  }
  graph_.contiguous = std::move(contiguous);
  if (guards_ != nullptr && guards_->settle()) {
    watch(*guards_);
    dependencies_.back().guards = std::move(guards_);
  }
  finished_ = true;
  return std::move(graph_);
}

}  // namespace muster::graph
