// Saves a pass over all gradients, read and written, where they are clipped by their norm: an update reads
// each of them anyway, and multiplies it there.
#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/training.h"
#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

// By root: the last node that writes it in place, or nothing.
std::vector<std::optional<std::size_t>> last_writers(const Graph& graph, const std::vector<ValueId>& roots) {
  std::vector<std::optional<std::size_t>> found(graph.values.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (std::size_t input = 0; input < graph.nodes[i].inputs.size(); ++input)
      if (graph.nodes[i].op->writes(input)) found[roots[graph.nodes[i].inputs[input]]] = i;
  return found;
}

// Where the number stands among the inputs of `product`, or nothing where it is no gradient and a number.
std::optional<std::size_t> place_of_number(const Graph& graph, const Node& product) {
  const TensorType number{DType::float32, {}};
  for (std::size_t i = 0; i < 2; ++i)
    if (graph.values[product.inputs[i]] == number &&
        graph.values[product.inputs[1 - i]] == graph.values[product.outputs[0]])
      return i;
  return std::nullopt;
}

}  // namespace

void fuse_gradient_scales(Graph& graph) {
  const Uses uses = uses_of(graph);
  const std::vector<ValueId> roots = roots_of(graph);
  const std::vector<std::optional<std::size_t>> writers = last_writers(graph, roots);
  // The update reads it later than the product did.
  const auto changes_behind = [&](ValueId id, ValueId product) {
    const std::optional<std::size_t> writer = writers[roots[id]];
    return writer && *writer > *uses.maker[product];
  };
  for (Node& node : graph.nodes) {
    if (node.op != &adam_weight_decay_op() || node.attributes.get(gradient_scale_attribute, false) ||
        node.attributes.get("loss_scale", 1.0) != 1.0)
      continue;
    const ValueId scaled = node.inputs[1];
    const Node* product = sole_maker(graph, uses, scaled, *find_op("mul"));
    if (product == nullptr) continue;
    const std::optional<std::size_t> number = place_of_number(graph, *product);
    if (!number || changes_behind(product->inputs[0], scaled) || changes_behind(product->inputs[1], scaled))
      continue;
    node.inputs[1] = product->inputs[1 - *number];
    node.inputs.push_back(product->inputs[*number]);
    node.attributes.set(gradient_scale_attribute, true);
  }
  remove_dead(graph);
}

}  // namespace muster::graph
