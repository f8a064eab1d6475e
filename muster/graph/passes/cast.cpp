// Saves the casts of mixed precision that round nothing, or round what need not be.
#include <algorithm>

#include "muster/graph/ops/image.h"
#include "muster/graph/ops/ops.h"
#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

bool casts(const Graph& graph, const Node& node, DType from, DType to) {
  return node.op == &cast_op() && graph.values[node.inputs[0]].dtype == from &&
         graph.values[node.outputs[0]].dtype == to;
}

// Who reads `unwanted` reads `instead`.
void replace(Graph& graph, ValueId unwanted, ValueId instead) {
  for (Node& node : graph.nodes) std::replace(node.inputs.begin(), node.inputs.end(), unwanted, instead);
  std::replace(graph.outputs.begin(), graph.outputs.end(), unwanted, instead);
}

void skip_round_trip(Graph& graph, const Uses& uses, const Node& node) {
  if (!casts(graph, node, DType::float32, DType::bfloat16)) return;
  const auto maker = uses.maker[node.inputs[0]];
  if (maker && casts(graph, graph.nodes[*maker], DType::bfloat16, DType::float32))
    replace(graph, node.outputs[0], graph.nodes[*maker].inputs[0]);
}

// The earlier node gives float32 itself, at the place of the cast.
void absorb_widening(Graph& graph, const Uses& uses, Node& node) {
  if (!casts(graph, node, DType::bfloat16, DType::float32)) return;
  for (const Op* op : {&matmul_op(), &conv2d_grad_weight_op()}) {
    const Node* product = sole_maker(graph, uses, node.inputs[0], *op);
    if (product == nullptr) continue;
    Attributes attributes = product->attributes;
    attributes.set("dtype", DType::float32);
    node = {.op = op,
            .inputs = product->inputs,
            .outputs = node.outputs,
            .attributes = attributes,
            .placement = product->placement};
    return;
  }
}

// What is cast twice may be read later than it was: until then no op may write over it.
bool writes_bfloat16(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    const auto is_low = [&](std::size_t input) {
      return input < node.inputs.size() && graph.values[node.inputs[input]].dtype == DType::bfloat16;
    };
    return (node.op->sharing == Sharing::in_place && is_low(0)) ||
           std::any_of(node.op->written.begin(), node.op->written.end(), is_low);
  });
}

}  // namespace

void fuse_casts(Graph& graph) {
  if (writes_bfloat16(graph)) return;
  const Uses uses = uses_of(graph);
  for (const Node& node : graph.nodes) skip_round_trip(graph, uses, node);
  remove_dead(graph);
  const Uses later = uses_of(graph);
  for (Node& node : graph.nodes) absorb_widening(graph, later, node);
  remove_dead(graph);
}

}  // namespace muster::graph
