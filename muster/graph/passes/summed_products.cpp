// A weight that many steps use, as those of a recurrent net do, has as gradient the sum of their products:
// for each step a product of a few rows, and a pass over the whole weight to add it. The rows of several
// steps one below the other are one product.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "muster/graph/ops/ops.h"
#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

// A product gains nothing from more rows, and what it takes lies in memory until then.
constexpr std::int64_t rows_wanted = 1024;
constexpr std::size_t terms_min = 4;

// a^T b, where a and b have the same few rows.
bool is_product_of_rows(const Node& node) {
  if (node.op != &matmul_op()) return false;
  const auto& entries = node.attributes.entries();
  const bool has_flags_alone = std::ranges::all_of(entries, [](const auto& entry) {
    return entry.first == "transpose_a" || entry.first == "transpose_b";
  });
  return has_flags_alone && node.attributes.get("transpose_a", false) &&
         !node.attributes.get("transpose_b", false);
}

bool changes_values(const Node& node) {
  return node.op->sharing == Sharing::in_place || !node.op->written.empty();
}

class SummedProducts {
 public:
  explicit SummedProducts(Graph& graph)
      : graph_(graph), uses_(uses_of(graph)), is_seen_(graph.nodes.size(), false) {}

  void join() {
    // From the end: a sum of three takes the sum of two before that becomes a node of its own.
    for (std::size_t i = graph_.nodes.size(); i-- > 0;)
      if (graph_.nodes[i].op == &add_op() && !is_seen_[i])
        if (const auto terms = terms_of(i); terms && is_worth_it(*terms)) join(i, *terms);
    insert_nodes();
    remove_dead(graph_);
  }

 private:
  // The products whose sum node `last` gives, in program order; nothing where it is another sum.
  std::optional<std::vector<std::size_t>> terms_of(std::size_t last) {
    std::vector<std::size_t> terms, open{last};
    while (!open.empty()) {
      const std::size_t sum = open.back();
      open.pop_back();
      is_seen_[sum] = true;
      for (const ValueId id : graph_.nodes[sum].inputs) {
        if (uses_.count[id] != 1 || !uses_.maker[id]) return std::nullopt;
        const std::size_t maker = *uses_.maker[id];
        const Node& node = graph_.nodes[maker];
        if (node.placement != graph_.nodes[last].placement || node.recompute != graph_.nodes[last].recompute)
          return std::nullopt;
        if (node.op == &add_op() && graph_.values[id] == graph_.values[graph_.nodes[last].outputs[0]])
          open.push_back(maker);
        else if (is_product_of_rows(node))
          terms.push_back(maker);
        else
          return std::nullopt;
      }
    }
    std::ranges::sort(terms);
    const auto begin = graph_.nodes.begin();
    if (std::any_of(begin + static_cast<std::ptrdiff_t>(terms[0]), begin + static_cast<std::ptrdiff_t>(last),
                    changes_values))
      return std::nullopt;
    return terms;
  }

  std::int64_t rows_of(std::size_t term) const {
    return graph_.values[graph_.nodes[term].inputs[0]].shape[0];
  }

  // Copying the rows has to be less than adding the products.
  bool is_worth_it(const std::vector<std::size_t>& terms) const {
    const Shape& made = graph_.values[graph_.nodes[terms[0]].outputs[0]].shape;
    std::int64_t rows = 0;
    for (const std::size_t term : terms) rows += rows_of(term);
    return terms.size() >= terms_min &&
           rows * (made[0] + made[1]) <= static_cast<std::int64_t>(terms.size()) * made[0] * made[1];
  }

  // Node `last` becomes the product of all terms, or adds the product of the last of them to the others'.
  void join(std::size_t last, const std::vector<std::size_t>& terms) {
    std::optional<ValueId> sum;
    for (std::size_t begin = 0; begin < terms.size();) {
      std::size_t end = begin;
      for (std::int64_t rows = 0; end < terms.size() && rows < rows_wanted; ++end)
        rows += rows_of(terms[end]);
      const std::span<const std::size_t> part(terms.begin() + static_cast<std::ptrdiff_t>(begin),
                                              end - begin);
      begin = end;
      const std::size_t place = begin == terms.size() ? last : part.back() + 1;
      Node product = product_of(part, last, place);
      if (begin < terms.size()) {
        const ValueId made = make(std::move(product), graph_.values[graph_.nodes[last].outputs[0]], place);
        sum = sum ? make(like(last, add_op(), {*sum, made}), graph_.values[made], place) : made;
        continue;
      }
      if (sum) {
        const ValueId made = make(std::move(product), graph_.values[*sum], place);
        product = like(last, add_op(), {*sum, made});
      }
      product.outputs = graph_.nodes[last].outputs;
      graph_.nodes[last] = std::move(product);
    }
  }

  Node product_of(std::span<const std::size_t> terms, std::size_t last, std::size_t place) {
    Node product = like(last, matmul_op(), {joined(terms, 0, last, place), joined(terms, 1, last, place)});
    product.attributes = {{"transpose_a", true}};
    return product;
  }

  // The inputs `which` of the terms, one below the other.
  ValueId joined(std::span<const std::size_t> terms, std::size_t which, std::size_t last, std::size_t place) {
    std::vector<ValueId> parts;
    TensorType type = graph_.values[graph_.nodes[terms[0]].inputs[which]];
    std::int64_t rows = 0;
    for (const std::size_t term : terms) {
      parts.push_back(graph_.nodes[term].inputs[which]);
      rows += rows_of(term);
    }
    if (parts.size() == 1) return parts[0];
    type.shape = Shape{rows, type.shape[1]};
    Node concat = like(last, *find_op("concat"), std::move(parts));
    concat.attributes = {{"axis", std::int64_t{0}}};
    return make(std::move(concat), type, place);
  }

  Node like(std::size_t last, const Op& op, std::vector<ValueId> inputs) const {
    Node node = graph_.nodes[last];
    node.op = &op;
    node.inputs = std::move(inputs);
    node.outputs.clear();
    node.attributes = {};
    return node;
  }

  // To stand before node `place` of today.
  ValueId make(Node node, const TensorType& type, std::size_t place) {
    graph_.values.push_back(type);
    const auto id = static_cast<ValueId>(graph_.values.size() - 1);
    node.outputs = {id};
    made_.emplace_back(place, std::move(node));
    return id;
  }

  void insert_nodes() {
    std::ranges::stable_sort(made_, {}, [](const auto& each) { return each.first; });
    for (OwnGradient& own : graph_.own_gradients)
      own.end += static_cast<std::size_t>(
          std::ranges::count_if(made_, [&](const auto& each) { return each.first < own.end; }));
    std::vector<Node> nodes;
    auto next = made_.begin();
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (; next != made_.end() && next->first == i; ++next) nodes.push_back(std::move(next->second));
      nodes.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(nodes);
  }

  Graph& graph_;
  const Uses uses_;
  std::vector<bool> is_seen_;                       // nodes that are part of a sum that was looked at
  std::vector<std::pair<std::size_t, Node>> made_;  // by the node that they stand before
};

}  // namespace

void join_summed_products(Graph& graph) { SummedProducts(graph).join(); }

}  // namespace muster::graph
