// Private to graph: parts of passes that make one op of what was written in several.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/graph/kernel.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {

// Looks backwards from the node that is last in a pattern.
class Pattern {
 public:
  using Nodes = std::vector<Node>;  // the last one makes what is written over

 protected:
  // `wrt` are values that gradients will be taken for.
  Pattern(Graph& graph, std::span<const ValueId> wrt);

  // What `match` finds behind `last`; without the values that it made where it finds nothing.
  template <class Match>
  std::optional<Nodes> found_at(const Node& last, const Match& match) {
    const auto values = static_cast<std::ptrdiff_t>(graph_.values.size());
    last_ = &last;
    nodes_.clear();
    std::optional<Nodes> made = match();
    if (!made) graph_.values.erase(graph_.values.begin() + values, graph_.values.end());
    return made;
  }

  static bool is(const Node& node, std::string_view name) { return node.op->name == name; }
  bool is_number(ValueId id) const { return graph_.values[id].shape.elements() == 1; }
  // The node that makes `id` for the pattern alone, perhaps through a change of precision, when it is of this
  // op. `id` becomes what it makes.
  const Node* maker(ValueId& id, std::string_view name) const;

  const Node* input_maker(const Node& node, std::size_t input, std::string_view name) const {
    ValueId id = node.inputs[input];
    return maker(id, name);
  }
  // What `id` is in more bits, or else itself.
  ValueId before_widening(ValueId id) const;
  // A parameter or a table that was rounded for what it meets here, as it is kept in that dtype.
  ValueId as_kept(ValueId id, DType dtype) const;

  // A node before the last one, and what it makes; nothing where the op does not take these.
  std::optional<ValueId> make(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::optional<ValueId> in_dtype(ValueId id, DType dtype);
  // The nodes that were made, of which the last makes `id` in that dtype, in place of what `last_` made.
  Nodes ending(ValueId id, DType dtype);
  Node node(std::string_view op, std::vector<ValueId> inputs, Attributes attributes) const;
  ValueId new_value(TensorType type);
  bool is_narrower(ValueId id, DType dtype) const {
    return size_bytes(graph_.values[id].dtype) < size_bytes(dtype);
  }

  Graph& graph_;  // gets values, its nodes stay
  Uses uses_;
  std::vector<bool> varies_;   // with what gradients are taken for
  std::vector<bool> depends_;  // on inputs or parameters
  std::vector<bool> wanted_;   // by others than nodes
  const Node* last_ = nullptr;
  Nodes nodes_;  // that were made for it

 private:
  const Node* cast_that_makes(ValueId id) const;
};

// The last node of each pattern is written over by what `match` gives for it, if anything; what the pattern
// was made of is removed as dead where the graph is compiled.
template <class Match>
void write_over(Graph& graph, Match match) {
  std::vector<std::optional<Pattern::Nodes>> found(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) found[i] = match(graph.nodes[i]);
  std::vector<Node> nodes;
  std::vector<std::size_t> end_of(graph.nodes.size() + 1, 0);  // by node: where those before it end now
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (found[i])
      nodes.insert(nodes.end(), found[i]->begin(), found[i]->end());
    else
      nodes.push_back(std::move(graph.nodes[i]));
    end_of[i + 1] = nodes.size();
  }
  graph.nodes = std::move(nodes);
  for (OwnGradient& own : graph.own_gradients) own.end = end_of[own.end];
}

inline bool has(const Graph& graph, std::string_view op) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return node.op->name == op; });
}

}  // namespace muster::graph
