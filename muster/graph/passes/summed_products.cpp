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

bool writes_an_input(const Node& node) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (node.op->writes(i)) return true;
  return false;
}

// What node `last` gives, and the sums before it that it alone takes.
struct Sum {
  std::size_t last = 0;
  std::vector<std::size_t> products;  // nodes, in program order
  std::vector<ValueId> others;
};

class SummedProducts {
 public:
  explicit SummedProducts(Graph& graph)
      : graph_(graph), uses_(uses_of(graph)), is_seen_(graph.nodes.size(), false) {}

  void join() {
    // From the end: a sum of three takes the sum of two before that becomes a node of its own.
    for (std::size_t i = graph_.nodes.size(); i-- > 0;)
      if (graph_.nodes[i].op == &add_op() && !is_seen_[i])
        if (const Sum sum = sum_at(i); is_worth_it(sum) && stays_unchanged(sum)) join(sum);
    insert_nodes();
    remove_dead(graph_);
  }

 private:
  Sum sum_at(std::size_t last) {
    Sum sum{.last = last, .products = {}, .others = {}};
    std::vector<std::size_t> open{last};
    while (!open.empty()) {
      const Node& node = graph_.nodes[open.back()];
      is_seen_[open.back()] = true;
      open.pop_back();
      for (const ValueId id : node.inputs) {
        const std::optional<std::size_t> maker = maker_for(id, sum);
        if (maker && graph_.nodes[*maker].op == &add_op())
          open.push_back(*maker);
        else if (maker)
          sum.products.push_back(*maker);
        else
          sum.others.push_back(id);
      }
    }
    std::ranges::sort(sum.products);
    return sum;
  }

  // The node of a sum or a product that makes `id` for this sum alone. Where it was placed does not count:
  // the graph is one worker's part by now, and has to give the bits of one process.
  std::optional<std::size_t> maker_for(ValueId id, const Sum& sum) const {
    const Node& last = graph_.nodes[sum.last];
    if (uses_.count[id] != 1 || !uses_.maker[id] || graph_.values[id] != graph_.values[last.outputs[0]])
      return {};
    const Node& node = graph_.nodes[*uses_.maker[id]];
    return node.recompute == last.recompute && (node.op == &add_op() || is_product_of_rows(node))
               ? uses_.maker[id]
               : std::nullopt;
  }

  std::int64_t rows_of(std::size_t term) const {
    return graph_.values[graph_.nodes[term].inputs[0]].shape[0];
  }

  // Copying the rows has to be less than adding the products.
  bool is_worth_it(const Sum& sum) const {
    if (sum.products.size() < terms_min) return false;
    const Shape& made = graph_.values[graph_.nodes[sum.last].outputs[0]].shape;
    std::int64_t rows = 0;
    for (const std::size_t term : sum.products) rows += rows_of(term);
    return rows * (made[0] + made[1]) <= static_cast<std::int64_t>(sum.products.size()) * made[0] * made[1];
  }

  // Nothing that the products take is written before the sum. Mostly nothing is written there at all.
  bool stays_unchanged(const Sum& sum) const {
    const auto at = [this](std::size_t node) {
      return graph_.nodes.begin() + static_cast<std::ptrdiff_t>(node);
    };
    if (std::none_of(at(sum.products[0]), at(sum.last), writes_an_input)) return true;
    return std::ranges::none_of(sum.products, [&](std::size_t product) {
      return is_written_between(graph_, graph_.nodes[product], graph_.nodes[sum.last]);
    });
  }

  // The last node becomes the product of all rows, or what adds the last of several values.
  void join(const Sum& sum) {
    const TensorType type = graph_.values[graph_.nodes[sum.last].outputs[0]];
    std::vector<std::pair<ValueId, std::size_t>> values;  // and the nodes before which they can be added
    std::span<const std::size_t> rest(sum.products);
    while (!rest.empty()) {
      const auto part = rest.first(terms_of_one_product(rest));
      rest = rest.subspan(part.size());
      const std::size_t place = part.back() + 1;
      values.emplace_back(make(product_of(part, sum.last, place), type, place), place);
    }
    for (const ValueId other : sum.others) values.emplace_back(other, sum.last);
    if (values.size() == 1) return become(sum.last, take_last());
    ValueId before = values[0].first;
    for (std::size_t i = 1; i + 1 < values.size(); ++i)
      before = make(like(sum.last, add_op(), {before, values[i].first}), type, values[i].second);
    become(sum.last, like(sum.last, add_op(), {before, values.back().first}));
  }

  std::size_t terms_of_one_product(std::span<const std::size_t> terms) const {
    std::size_t count = 0;
    for (std::int64_t rows = 0; count < terms.size() && rows < rows_wanted; ++count)
      rows += rows_of(terms[count]);
    return count;
  }

  void become(std::size_t place, Node node) {
    node.outputs = graph_.nodes[place].outputs;
    graph_.nodes[place] = std::move(node);
  }

  // The node that was made last, and its value, which nothing takes.
  Node take_last() {
    Node node = std::move(made_.back().second);
    made_.pop_back();
    graph_.values.pop_back();
    return node;
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
