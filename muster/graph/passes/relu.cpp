// Saves passes over memory around relu, where nets of convolutions spend the time that their arithmetic
// leaves.
#include <algorithm>

#include "muster/graph/ops/image.h"
#include "muster/graph/ops/ops.h"
#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

// The relu becomes the earlier op with relu; the earlier node, now without users, is removed as dead.
void absorb_conv2d(Graph& graph, const Uses& uses, Node& node) {
  const Node* conv = absorbed_maker(graph, uses, node, conv2d_op());
  if (conv == nullptr) return;
  Attributes attributes = conv->attributes;
  attributes.set("activation", std::string("relu"));
  node = {.op = conv->op, .inputs = conv->inputs, .outputs = node.outputs, .attributes = attributes};
}

void absorb_add(Graph& graph, const Uses& uses, Node& node) {
  const Node* sum = absorbed_maker(graph, uses, node, add_op());
  if (sum == nullptr) return;
  for (const ValueId id : sum->inputs)
    if (graph.values[id] != graph.values[node.outputs[0]]) return;  // broadcast
  if (!is_floating(graph.values[node.outputs[0]].dtype)) return;
  node = {.op = &add_relu_op(), .inputs = sum->inputs, .outputs = node.outputs, .attributes = {}};
}

// Here the earlier node takes over, at its place: its other outputs are used on the way back.
void absorb_into_batch_norm(Graph& graph, const Uses& uses, Node& node) {
  Node* norm = sole_maker(graph, uses, node.inputs[0], batch_norm_op());
  if (norm == nullptr || norm->outputs[0] != node.inputs[0] || !norm->attributes.get("training", false))
    return;
  const auto mask = static_cast<ValueId>(graph.values.size());
  graph.values.push_back({DType::uint8, graph.values[norm->inputs[0]].shape});
  norm->op = &batch_norm_relu_op();
  const ValueId unused = norm->outputs[0];
  norm->outputs[0] = node.outputs[0];
  norm->outputs.push_back(mask);
  node.outputs[0] = unused;  // it has no user left
}

// batch_norm_grad(x, relu_grad(dz, z), ...) where z is batch_norm_relu's output.
void absorb_relu_grad(Graph& graph, const Uses& uses, Node& node) {
  if (node.op != &batch_norm_grad_op()) return;
  const Node* grad = sole_maker(graph, uses, node.inputs[1], relu_grad_op());
  if (grad == nullptr || !uses.maker[grad->inputs[1]]) return;
  const Node& norm = graph.nodes[*uses.maker[grad->inputs[1]]];
  const bool is_same = norm.op == &batch_norm_relu_op() && norm.outputs[0] == grad->inputs[1] &&
                       norm.inputs[0] == node.inputs[0] && norm.outputs[1] == node.inputs[3] &&
                       norm.outputs[2] == node.inputs[4];
  if (!is_same) return;
  node.op = &batch_norm_relu_grad_op();
  node.inputs[1] = grad->inputs[0];
  node.inputs.push_back(norm.outputs[3]);
}

void absorb_sum(Graph& graph, const Uses& uses, Node& node) {
  if (node.op != &relu_grad_op()) return;
  const Node* sum = absorbed_maker(graph, uses, node, add_op());
  if (sum == nullptr) return;
  for (const ValueId id : sum->inputs)
    if (graph.values[id] != graph.values[node.outputs[0]]) return;
  node = {.op = &add_relu_grad_op(),
          .inputs = {sum->inputs[0], sum->inputs[1], node.inputs[1]},
          .outputs = node.outputs,
          .attributes = {}};
}

// relu_grad(max_pool2d_grad(dy, positions), y), where y = relu(…) is what was pooled, becomes
// max_pool2d_grad(relu_grad(dy, pooled), positions): the same bits by passes over smaller images, since a
// gradient goes to the pixel whose value was pooled.
void pool_after_relu_grad(Graph& graph, const Uses& uses, Node& node) {
  if (node.op != &relu_grad_op()) return;
  Node* grad = sole_maker(graph, uses, node.inputs[0], max_pool2d_grad_op());
  if (grad == nullptr || !uses.maker[grad->inputs[1]]) return;
  const Node& pool = graph.nodes[*uses.maker[grad->inputs[1]]];
  if (pool.op != &max_pool2d_op() || pool.outputs[1] != grad->inputs[1] || pool.inputs[0] != node.inputs[1])
    return;
  const auto passed = static_cast<ValueId>(graph.values.size());
  graph.values.push_back(TensorType(graph.values[grad->inputs[0]]));
  const Node spread{.op = grad->op,
                    .inputs = {passed, grad->inputs[1]},
                    .outputs = node.outputs,
                    .attributes = grad->attributes};
  *grad = {
      .op = node.op, .inputs = {grad->inputs[0], pool.outputs[0]}, .outputs = {passed}, .attributes = {}};
  node = spread;
}

}  // namespace

void fuse_relu(Graph& graph) {
  const Uses uses = uses_of(graph);
  for (Node& node : graph.nodes)
    if (node.op == &relu_op()) absorb_conv2d(graph, uses, node);
  for (Node& node : graph.nodes)
    if (node.op == &relu_op()) absorb_add(graph, uses, node);
  for (Node& node : graph.nodes)
    if (node.op == &relu_op()) absorb_into_batch_norm(graph, uses, node);
  remove_dead(graph);
  const Uses later = uses_of(graph);
  for (Node& node : graph.nodes) absorb_relu_grad(graph, later, node);
  for (Node& node : graph.nodes) absorb_sum(graph, later, node);
  remove_dead(graph);
  const Uses last = uses_of(graph);
  for (Node& node : graph.nodes) pool_after_relu_grad(graph, last, node);
}

}  // namespace muster::graph
