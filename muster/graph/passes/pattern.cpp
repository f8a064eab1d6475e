#include "muster/graph/passes/pattern.h"

namespace muster::graph {
namespace {

// By value: whether it depends on one of `from`.
std::vector<bool> dependants(const Graph& graph, std::span<const ValueId> from) {
  std::vector<bool> found(graph.values.size(), false);
  for (const ValueId id : from) found[id] = true;
  for (const Node& node : graph.nodes)
    if (std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return found[id]; }))
      for (const ValueId id : node.outputs) found[id] = true;
  return found;
}

}  // namespace

Pattern::Pattern(Graph& graph, std::span<const ValueId> wrt)
    : graph_(graph),
      uses_(live_uses(graph)),
      varies_(dependants(graph, wrt)),
      wanted_(values_looked_at(graph, wrt)) {
  std::vector<ValueId> given = graph.inputs;
  for (const auto& [id, parameter] : graph.parameters) given.push_back(id);
  depends_ = dependants(graph, given);
}

const Node* Pattern::maker(ValueId& id, std::string_view name) const {
  ValueId at = id;
  for (int casts = 0; casts < 2; ++casts) {
    if (uses_.count[at] != 1 || wanted_[at] || !uses_.maker[at]) return nullptr;
    const Node& node = graph_.nodes[*uses_.maker[at]];
    if (node.placement != last_->placement || node.outputs[0] != at) return nullptr;
    if (is(node, name)) {
      id = at;
      return &node;
    }
    if (!is(node, "cast") || !is_floating(graph_.values[node.inputs[0]].dtype)) return nullptr;
    at = node.inputs[0];
  }
  return nullptr;
}

const Node* Pattern::cast_that_makes(ValueId id) const {
  if (!uses_.maker[id]) return nullptr;
  const Node& made = graph_.nodes[*uses_.maker[id]];
  return is(made, "cast") && is_floating(graph_.values[made.inputs[0]].dtype) ? &made : nullptr;
}

ValueId Pattern::before_widening(ValueId id) const {
  const Node* cast = cast_that_makes(id);
  return cast != nullptr && is_narrower(cast->inputs[0], graph_.values[id].dtype) ? cast->inputs[0] : id;
}

ValueId Pattern::as_kept(ValueId id, DType dtype) const {
  const Node* cast = cast_that_makes(id);
  return cast != nullptr && !wanted_[id] && graph_.values[cast->inputs[0]].dtype == dtype ? cast->inputs[0]
                                                                                          : id;
}

std::optional<ValueId> Pattern::in_dtype(ValueId id, DType dtype) {
  if (graph_.values[id].dtype == dtype) return id;
  return make("cast", {id}, {{"dtype", dtype}});
}

Pattern::Nodes Pattern::ending(ValueId id, DType dtype) {
  if (graph_.values[id].dtype == dtype) {
    nodes_.back().outputs[0] = last_->outputs[0];
    return nodes_;
  }
  nodes_.push_back(node("cast", {id}, {{"dtype", dtype}}));
  nodes_.back().outputs = last_->outputs;
  return nodes_;
}

std::optional<ValueId> Pattern::make(std::string_view op, std::vector<ValueId> inputs,
                                     Attributes attributes) {
  Node made = node(op, std::move(inputs), std::move(attributes));
  std::vector<TensorType> types;
  for (const ValueId id : made.inputs) types.push_back(graph_.values[id]);
  const auto inferred = made.op->infer({types, {}, made.attributes});
  if (!inferred) return std::nullopt;
  for (const TensorType& type : *inferred) made.outputs.push_back(new_value(type));
  nodes_.push_back(std::move(made));
  return nodes_.back().outputs[0];
}

Node Pattern::node(std::string_view op, std::vector<ValueId> inputs, Attributes attributes) const {
  return {.op = find_op(op),
          .inputs = std::move(inputs),
          .outputs = {},
          .attributes = std::move(attributes),
          .placement = last_->placement,
          .origin = last_->origin,
          .recompute = last_->recompute,
          .is_behind_losses = last_->is_behind_losses};
}

ValueId Pattern::new_value(TensorType type) {
  graph_.values.push_back(std::move(type));
  return static_cast<ValueId>(graph_.values.size() - 1);
}

}  // namespace muster::graph
