// Private to graph: producer, users and sizes of values, for passes and explanations.
#pragma once

#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "muster/graph/nodes.h"

namespace muster::graph {

struct Uses {
  std::vector<std::size_t> count;                 // by value; an output of the graph counts as a use
  std::vector<std::optional<std::size_t>> maker;  // the node that makes a value
};

inline Uses uses_of(const Graph& graph) {
  Uses uses{std::vector<std::size_t>(graph.values.size(), 0),
            std::vector<std::optional<std::size_t>>(graph.values.size())};
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : graph.nodes[i].inputs) ++uses.count[id];
    for (const ValueId id : graph.nodes[i].outputs) uses.maker[id] = i;
  }
  for (const ValueId id : graph.outputs) ++uses.count[id];
  return uses;
}

// Uses by what outputs, losses and effects need: code that was traced may have made more.
Uses live_uses(const Graph& graph);

// By value: whether others than nodes look at it, as gradients for `wrt`, losses, and gradients of code's
// own.
std::vector<bool> values_looked_at(const Graph& graph, std::span<const ValueId> wrt);

// Of these values together.
inline std::size_t bytes_of(const Graph& graph, std::span<const ValueId> ids) {
  std::size_t sum = 0;
  for (const ValueId id : ids) sum += graph.values[id].size_bytes();
  return sum;
}

// By value: what it is another name of. Views and in-place updates are their input; all others are
// themselves.
inline std::vector<ValueId> roots_of(const Graph& graph) {
  std::vector<ValueId> roots(graph.values.size());
  std::iota(roots.begin(), roots.end(), ValueId{0});
  for (const Node& node : graph.nodes)
    if (node.op->sharing == Sharing::view || node.op->sharing == Sharing::in_place)
      roots[node.outputs[0]] = roots[node.inputs[0]];
  return roots;
}

// The node that makes `id`, when it is of `op` and `id` has one user.
inline Node* sole_maker(Graph& graph, const Uses& uses, ValueId id, const Op& op) {
  if (uses.count[id] != 1 || !uses.maker[id]) return nullptr;
  Node& node = graph.nodes[*uses.maker[id]];
  return node.op == &op ? &node : nullptr;
}

// Whether a node behind `first` and before `last`, both of the graph, writes what `first` reads: `last` would
// read another value.
bool is_written_between(const Graph& graph, const Node& first, const Node& last);

// The sole maker of what `last` reads first, when `last` may read its inputs instead.
inline const Node* absorbed_maker(Graph& graph, const Uses& uses, const Node& last, const Op& op) {
  const Node* first = sole_maker(graph, uses, last.inputs[0], op);
  return first != nullptr && !is_written_between(graph, *first, last) ? first : nullptr;
}

}  // namespace muster::graph
