#include "muster/graph/backward.h"
#include "muster/graph/kernel.h"
#include "muster/graph/origin.h"
#include "muster/graph/own_gradient.h"
#include "muster/graph/scopes.h"
#include "muster/graph/thread_state.h"
#include "muster/graph/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace muster::graph {
namespace {

Value filled(const TensorType& type, double value) {
  return apply("fill", std::span<const Value>{},
               {{"dtype", type.dtype}, {"shape", type.shape.sizes()}, {"value", value}});
}

// Where a node runs, the way back through it does too.
std::vector<Value> gradients_of(const Node& node, const GradientQuery& query) {
  const PlaceScope scope(node.placement);
  return node.op->gradient(query);
}

bool has_gradient(DType dtype) { return is_floating(dtype) || process_state().differentiates_whole_numbers; }

// Marks what depends on `wrt` through values that have gradients.
std::vector<bool> depending(const Graph& graph, std::span<const ValueId> wrt) {
  std::vector<bool> marked(graph.values.size(), false);
  for (const ValueId id : wrt) marked[id] = true;
  // Of a node, or of what has a gradient of its own.
  const auto follow = [&](const auto& step) {
    bool any = false;
    for (const ValueId id : step.inputs) any = any || marked[id];
    if (!any) return;
    for (const ValueId id : step.outputs) marked[id] = has_gradient(graph.values[id].dtype);
  };
  auto own = graph.own_gradients.begin();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    follow(graph.nodes[i]);
    for (; own != graph.own_gradients.end() && own->end == i + 1; ++own) follow(*own);
  }
  return marked;
}

// Until node `end`, which writes, code had `copy` in the place of `value`.
struct Snapshot {
  ValueId value = 0;
  ValueId copy = 0;
  std::size_t end = 0;
};

std::vector<Snapshot> snapshots_of(const Graph& graph) {
  std::vector<Snapshot> found;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (const Node& node = graph.nodes[i]; node.op->name == "snapshot")
      found.push_back({node.inputs[0], node.outputs[0], i});
  return found;
}

// The gradients known so far, by value.
struct Pass {
  const Graph& graph;
  const std::function<Value(ValueId)>& at;
  std::vector<bool> needed;
  std::vector<Snapshot> snapshots;
  std::vector<Value> gradients;
  std::size_t forward_nodes = 0;                                     // of the way forward
  std::vector<Value> passed = std::vector<Value>(gradients.size());  // that a gradient of one's own has taken

  // Several uses of one value add up.
  static Value sum(const Value& a, const Value& b) {
    if (!a.defined() || !b.defined()) return a.defined() ? a : b;
    return apply("add", {a, b});
  }
  // By value: what takes its place where it is computed again instead of being kept, and of which scopes it
  // was.
  std::vector<Value> again = std::vector<Value>(gradients.size());
  std::set<std::uint32_t> computed_again = {};

  // All nodes of a scope, behind what the backward pass has made so far; those that no node needs are dropped
  // with other dead nodes.
  void compute_again(std::uint32_t scope) {
    if (scope == 0 || !computed_again.insert(scope).second) return;
    const std::size_t count = forward_nodes;
    for (std::size_t i = 0; i < count; ++i) {
      if (graph.nodes[i].recompute != scope || graph.nodes[i].op->has_effect()) continue;
      const Node node = graph.nodes[i];  // a copy: adding moves them
      const Backward origin(node.origin, node.op->name);
      const PlaceScope place(node.placement);
      std::vector<Value> inputs;
      for (const ValueId id : node.inputs) inputs.push_back(had(id, i));
      const Values made = Trace::current()->add(*node.op, inputs, node.attributes);
      for (std::size_t k = 0; k < made.size(); ++k) again[node.outputs[k]] = made[k];
    }
  }

  void add(ValueId id, const Value& gradient) { gradients[id] = sum(gradients[id], gradient); }
  Value whole(ValueId id) const { return sum(passed[id], gradients[id]); }

  // What node `index` had as value `id`.
  Value had(ValueId id, std::size_t index) const {
    if (again[id].defined()) return again[id];
    for (const Snapshot& each : snapshots)
      if (each.value == id && index < each.end) return at(each.copy);
    return at(id);
  }

  // What flows to the outputs goes to the inputs, and not to what is between. What flows there past the
  // outputs goes the ordinary way.
  void step(const OwnGradient& own) {
    bool reached = false;
    bool wanted = false;
    std::vector<Value> inputs, outputs, flowing;
    for (const ValueId id : own.outputs) {
      reached = reached || gradients[id].defined();
      outputs.push_back(had(id, own.end));
      flowing.push_back(gradients[id].defined() ? gradients[id] : Value());
      passed[id] = sum(passed[id], gradients[id]);
      gradients[id] = Value();
    }
    for (const ValueId id : own.inputs) {
      inputs.push_back(had(id, own.end));
      wanted = wanted || needed[id];
    }
    if (!reached || !wanted) return;
    const Backward origin;
    for (std::size_t i = 0; i < flowing.size(); ++i)
      if (!flowing[i].defined()) flowing[i] = filled(outputs[i].type(), 0.0);
    const Values made = gradients_by(*own.rule, inputs, outputs, flowing);
    for (std::size_t i = 0; i < made.size(); ++i)
      if (made[i].defined() && needed[own.inputs[i]]) add(own.inputs[i], made[i]);
  }

  // Whether no floating gradient would pass through a node: one of whole numbers may end anywhere.
  bool ends_at_whole_numbers(const Node& node) const {
    const auto is_floating_id = [this](ValueId id) { return is_floating(graph.values[id].dtype); };
    const auto flows_in = [&](ValueId id) { return gradients[id].defined() && is_floating_id(id); };
    const auto flows_out = [&](ValueId id) { return needed[id] && is_floating_id(id); };
    return std::ranges::none_of(node.outputs, flows_in) || std::ranges::none_of(node.inputs, flows_out);
  }

  void step(std::size_t index) {
    const Node node = graph.nodes[index];  // a copy: rules append nodes
    bool reached = false;
    bool wanted = false;
    std::vector<Value> inputs, outputs, flowing;
    for (const ValueId id : node.outputs) {
      flowing.push_back(gradients[id]);
      reached = reached || gradients[id].defined();
    }
    for (const ValueId id : node.inputs) wanted = wanted || needed[id];
    if (!reached || !wanted) return;
    compute_again(node.recompute);
    for (const ValueId id : node.outputs) outputs.push_back(had(id, index));
    for (const ValueId id : node.inputs) inputs.push_back(had(id, index));
    if (node.op->gradient == nullptr && ends_at_whole_numbers(node)) return;
    if (node.op->gradient == nullptr)
      throw Exception(Code::not_provided, fmt::format("the gradient cannot pass through {}", node.op->name));
    const Backward origin(node.origin, node.op->name);
    const std::vector<Value> made = gradients_of(node, {inputs, outputs, flowing, node.attributes});
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (made[i].defined() && needed[node.inputs[i]]) add(node.inputs[i], made[i]);
    }
  }
};

}  // namespace

bool is_write_of_code(const Op& op) { return op.name == "assign" || op.name == "assign_add"; }

void require_differentiable(std::span<const Value> values, std::string_view what) {
  for (const Value& value : values) {
    if (!value.defined()) throw Exception(Code::invalid_argument, fmt::format("{} has no value", what));
    if (!has_gradient(value.dtype()))
      throw Exception(Code::invalid_argument, fmt::format("{} is {}: only floating tensors have gradients",
                                                          what, to_string(value.type())));
  }
}

std::vector<Value> backward(const Graph& graph, std::span<const ValueId> losses, std::span<const ValueId> wrt,
                            const std::function<Value(ValueId)>& at) {
  const PlaceScope anywhere(nullptr);  // sums of gradients, ones and zeros
  const std::size_t nodes = graph.nodes.size();
  Pass pass{graph, at, depending(graph, wrt), snapshots_of(graph), std::vector<Value>(graph.values.size()),
            nodes};
  const Backward origin;
  for (const ValueId id : losses) pass.add(id, filled(graph.values[id], 1.0));
  std::size_t own = graph.own_gradients.size();
  for (std::size_t index = nodes; index-- > 0;) {
    for (; own > 0 && graph.own_gradients[own - 1].end == index + 1; --own)
      pass.step(OwnGradient(graph.own_gradients[own - 1]));
    pass.step(index);
  }
  std::vector<Value> gradients;
  for (const ValueId id : wrt) {
    const Value made = pass.whole(id);
    gradients.push_back(made.defined() ? made : filled(graph.values[id], 0.0));
  }
  return gradients;
}

}  // namespace muster::graph
