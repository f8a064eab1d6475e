// Gradients are made one after another while the backward pass runs. An all_reduce of all of them would wait
// for the last; several buckets can travel while the others are still computed.
#include <algorithm>
#include <numeric>
#include <utility>

#include "muster/graph/ops/ops.h"
#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

using Indices = std::vector<std::size_t>;

bool writes(const Node& node, ValueId root, const std::vector<ValueId>& roots) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (node.op->writes(i) && roots[node.inputs[i]] == root) return true;
  return false;
}

// Where the inputs of one all_reduce are made, and what it becomes.
class Bucketing {
 public:
  Bucketing(const Graph& graph, std::size_t place)
      : graph_(graph), node_(graph.nodes[place]), made_at_(node_.inputs.size(), place) {
    const Uses uses = uses_of(graph);
    const std::vector<ValueId> roots = roots_of(graph);
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      const ValueId id = node_.inputs[i];
      // What is not computed, or changes later, is read where the program reads it.
      const bool changes = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                       [&](const Node& node) { return writes(node, roots[id], roots); });
      if (uses.maker[id] && !changes) made_at_[i] = *uses.maker[id];
    }
  }

  // The node for each bucket, after the node that makes its last input.
  std::vector<std::pair<std::size_t, Node>> buckets() const {
    Indices order(node_.inputs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return made_at_[a] < made_at_[b]; });
    std::vector<std::pair<std::size_t, Node>> made;
    Indices bucket;
    for (std::size_t n = 0; n < order.size(); ++n) {
      if (begins_bucket(n, bucket, order[n])) made.push_back(close(std::exchange(bucket, {})));
      bucket.push_back(order[n]);
    }
    made.push_back(close(bucket));
    return made;
  }

 private:
  // Whether the n-th input in order, `input`, begins a bucket after `bucket`.
  bool begins_bucket(std::size_t n, const Indices& bucket, std::size_t input) const {
    if (bucket.empty()) return false;
    if (node_.attributes.find("bucket_splits") != nullptr) {
      const auto splits = node_.attributes.get("bucket_splits", std::vector<std::int64_t>{});
      return std::find(splits.begin(), splits.end(), static_cast<std::int64_t>(n)) != splits.end();
    }
    std::size_t bytes = size_of(input);
    for (const std::size_t other : bucket) bytes += size_of(other);
    return bytes > static_cast<std::size_t>(node_.attributes.get("bucket_bytes", std::int64_t{0}));
  }

  std::size_t size_of(std::size_t input) const { return graph_.values[node_.inputs[input]].size_bytes(); }

  std::pair<std::size_t, Node> close(const Indices& bucket) const {
    Node made{.op = node_.op,
              .inputs = {},
              .outputs = {},
              .attributes = {{"reduction", node_.attributes.get<std::string>("reduction", "sum")},
                             {"weight_order", node_.attributes.get("weight_order", false)}},
              .origin = node_.origin};
    for (const std::size_t index : bucket) {
      made.inputs.push_back(node_.inputs[index]);
      made.outputs.push_back(node_.outputs[index]);
    }
    return {made_at_[bucket.back()], std::move(made)};
  }

  const Graph& graph_;
  const Node& node_;
  Indices made_at_;  // by input: the node
};

bool has_buckets(const Node& node) {
  return node.op == &all_reduce_op() && (node.attributes.find("bucket_bytes") != nullptr ||
                                         node.attributes.find("bucket_splits") != nullptr);
}

}  // namespace

void make_buckets(Graph& graph) {
  std::vector<std::vector<Node>> after(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!has_buckets(graph.nodes[i])) continue;
    for (auto& [place, bucket] : Bucketing(graph, i).buckets()) after[place].push_back(std::move(bucket));
  }
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!has_buckets(graph.nodes[i])) nodes.push_back(std::move(graph.nodes[i]));
    std::move(after[i].begin(), after[i].end(), std::back_inserter(nodes));
  }
  graph.nodes = std::move(nodes);
}

}  // namespace muster::graph
