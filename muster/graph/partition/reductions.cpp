#include "muster/graph/partition/reductions.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "muster/graph/ops/ops.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

using Positions = std::vector<std::int64_t>;

// Of each input of `node`, its position in the order in which they are made, in which buckets are cut.
Positions positions_of(const Graph& graph, const Node& node) {
  const Uses uses = uses_of(graph);
  std::vector<std::size_t> order(node.inputs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return uses.maker[node.inputs[a]].value_or(graph.nodes.size()) <
           uses.maker[node.inputs[b]].value_or(graph.nodes.size());
  });
  Positions positions(order.size());
  for (std::size_t n = 0; n < order.size(); ++n) positions[order[n]] = static_cast<std::int64_t>(n);
  return positions;
}

bool is_split(const Node& node) {
  return node.op == &all_reduce_op() && node.placement == nullptr && node.inputs.size() > 1;
}

}  // namespace

std::vector<std::size_t> split_reductions(Graph& graph) {
  std::vector<Node> nodes;
  std::vector<std::size_t> groups;
  std::size_t group = 0;
  for (const Node& node : graph.nodes) {
    if (!is_split(node)) {
      nodes.push_back(node);
      groups.push_back(0);
      continue;
    }
    ++group;
    const Positions positions = positions_of(graph, node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      Node& part = nodes.emplace_back(Node{.op = node.op,
                                           .inputs = {node.inputs[i]},
                                           .outputs = {node.outputs[i]},
                                           .attributes = node.attributes,
                                           .origin = node.origin,
                                           .is_behind_losses = node.is_behind_losses});
      part.attributes.set("positions", Positions{positions[i]});
      groups.push_back(group);
    }
  }
  graph.nodes = std::move(nodes);
  return groups;
}

void join_reduction(Node& node, const Node& next) {
  node.inputs.push_back(next.inputs[0]);
  node.outputs.push_back(next.outputs[0]);
  auto positions = node.attributes.get("positions", Positions{});
  const auto more = next.attributes.get("positions", Positions{});
  positions.insert(positions.end(), more.begin(), more.end());
  node.attributes.set("positions", std::move(positions));
}

void finish_reduction(Node& node) {
  if (node.op != &all_reduce_op() || node.attributes.find("positions") == nullptr) return;
  const auto positions = node.attributes.get("positions", Positions{});
  Attributes attributes;
  for (const auto& [name, value] : node.attributes.entries())
    if (name != "positions") attributes.set(name, value);
  if (attributes.find("bucket_splits") != nullptr) {
    Positions splits;  // as many of those here come before each
    for (const std::int64_t split : attributes.get("bucket_splits", Positions{}))
      splits.push_back(std::count_if(positions.begin(), positions.end(),
                                     [&](std::int64_t position) { return position < split; }));
    splits.erase(std::unique(splits.begin(), splits.end()), splits.end());
    attributes.set("bucket_splits", std::move(splits));
  }
  node.attributes = std::move(attributes);
}

}  // namespace muster::graph
