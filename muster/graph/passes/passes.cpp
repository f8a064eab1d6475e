#include "muster/graph/passes/passes.h"

#include <algorithm>

#include "muster/graph/ops/ops.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

// The later node takes over; the earlier one, now without users, is removed as dead.
void absorb_bias(Graph& graph, const Uses& uses, Node& node) {
  if (node.op != &bias_add_op()) return;
  const Node* product = absorbed_maker(graph, uses, node, matmul_op());
  if (product == nullptr) return;
  node = {.op = &dense_op(),
          .inputs = {product->inputs[0], product->inputs[1], node.inputs[1]},
          .outputs = node.outputs,
          .attributes = product->attributes};
}

void absorb_dense(Graph& graph, const Uses& uses, Node& node) {
  if (node.op != &relu_op() && node.op != &tanh_op()) return;
  const Node* dense = absorbed_maker(graph, uses, node, dense_op());
  if (dense == nullptr) return;
  Attributes attributes = dense->attributes;
  attributes.set("activation", std::string(node.op->name));
  node = {.op = &dense_op(), .inputs = dense->inputs, .outputs = node.outputs, .attributes = attributes};
}

}  // namespace

void remove_dead(Graph& graph) {
  std::vector<bool> live(graph.values.size(), false);
  for (const ValueId id : graph.outputs) live[id] = true;
  std::vector<bool> keep(graph.nodes.size(), false);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    keep[i] = node.op->has_effect() || node.attributes.get("kept", false) ||
              std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) { return live[id]; });
    if (!keep[i]) continue;
    for (const ValueId id : node.inputs) live[id] = true;
  }
  std::size_t next = 0;
  std::erase_if(graph.nodes, [&](const Node&) { return !keep[next++]; });
}

Uses live_uses(const Graph& graph) {
  Graph live = graph;
  live.outputs.insert(live.outputs.end(), graph.losses.begin(), graph.losses.end());
  remove_dead(live);
  Uses uses = uses_of(live);
  uses.maker = uses_of(graph).maker;
  return uses;
}

bool is_written_between(const Graph& graph, const Node& first, const Node& last) {
  std::vector<ValueId> roots;  // mostly nothing is written there
  for (const Node* node = &first + 1; node < &last; ++node)
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      if (!node->op->writes(i)) continue;
      if (roots.empty()) roots = roots_of(graph);
      for (const ValueId id : first.inputs)
        if (roots[id] == roots[node->inputs[i]]) return true;
    }
  return false;
}

std::vector<bool> values_looked_at(const Graph& graph, std::span<const ValueId> wrt) {
  std::vector<bool> found(graph.values.size(), false);
  for (const ValueId id : wrt) found[id] = true;
  for (const ValueId id : graph.losses) found[id] = true;
  for (const OwnGradient& own : graph.own_gradients) {
    for (const ValueId id : own.inputs) found[id] = true;
    for (const ValueId id : own.outputs) found[id] = true;
  }
  return found;
}

void fuse(Graph& graph) {
  remove_dead(graph);
  fuse_rotary(graph);
  fuse_attention(graph);
  fuse_norms(graph);
  reorder_products(graph);
  fuse_casts(graph);
  fuse_pads(graph);
  join_summed_products(graph);
  fuse_dense(graph);
  fuse_relu(graph);
  fuse_gradient_scales(graph);
}

void fuse_dense(Graph& graph) {
  const Uses uses = uses_of(graph);
  for (Node& node : graph.nodes) absorb_bias(graph, uses, node);
  for (Node& node : graph.nodes) absorb_dense(graph, uses, node);
  remove_dead(graph);
}

}  // namespace muster::graph
