// Products in a row, (a b) c or c (a b), in the order that costs less: (q k) v of attention without a softmax
// makes a matrix of positions by positions, q (k v) one of features by features. As the orders of a chain of
// matrices in Cormen et al., Introduction to Algorithms, 15.2, two products at a time.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "muster/graph/ops/ops.h"
#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

// The other order rounds otherwise, so it has to be worth it; and that it is less each time is the end.
constexpr double WORTH = 2;  // times fewer operations

struct Operand {
  ValueId id = 0;
  bool transpose = false;
};

struct Product {
  Operand a;
  Operand b;
};

// Products of the two kinds with nothing but flags for transposes: no layout, no dtype of its own.
std::optional<Product> product_of(const Node& node) {
  if (node.op != &matmul_op() && node.op->name != "batch_matmul") return std::nullopt;
  const auto is_flag = [](const Attributes::Entry& entry) {
    return entry.first == "transpose_a" || entry.first == "transpose_b";
  };
  const auto& entries = node.attributes.entries();
  if (!std::all_of(entries.begin(), entries.end(), is_flag)) return std::nullopt;
  return Product{{node.inputs[0], node.attributes.get("transpose_a", false)},
                 {node.inputs[1], node.attributes.get("transpose_b", false)}};
}

Operand turned(const Operand& operand) { return {operand.id, !operand.transpose}; }

class Reordering {
 public:
  Reordering(Graph& graph, std::span<const ValueId> wrt) : graph_(graph), wrt_(wrt) {}

  // The product that comes before node `last`, which takes it then; nothing where the order stays.
  std::optional<Node> inner_of(Node& last) {
    const std::optional<Product> outer = product_of(last);
    if (!outer) return std::nullopt;
    for (const bool is_left : {true, false})
      if (const Node* first = sole_product(is_left ? outer->a.id : outer->b.id, last))
        if (auto inner = reorder(last, *first, *outer, is_left)) return inner;
    return std::nullopt;
  }

  // After a change.
  void look_again() { uses_.reset(); }

 private:
  // The product that makes `id` for `last` alone, with nothing between them that writes what it took.
  const Node* sole_product(ValueId id, const Node& last) {
    if (!uses_) {
      uses_ = live_uses(graph_);
      wanted_ = values_looked_at(graph_, wrt_);
    }
    if (uses_->count[id] != 1 || wanted_[id] || !uses_->maker[id]) return nullptr;
    const Node& node = graph_.nodes[*uses_->maker[id]];
    if (!product_of(node) || node.placement != last.placement || node.recompute != last.recompute)
      return nullptr;
    for (const Node* between = &node; between != &last; ++between)
      if (between->op->sharing == Sharing::in_place || !between->op->written.empty()) return nullptr;
    return &node;
  }

  // (a b) c becomes a (b c), and c (a b) becomes (c a) b, where (a b) may be transposed.
  std::optional<Node> reorder(Node& last, const Node& first, const Product& outer, bool is_left) {
    Product made = *product_of(first);
    if ((is_left ? outer.a : outer.b).transpose) made = {turned(made.b), turned(made.a)};
    const Product inner = is_left ? Product{made.b, outer.b} : Product{outer.a, made.a};
    std::optional<Node> node = node_of(inner, first, last);
    if (!node) return std::nullopt;
    const ValueId between = node->outputs[0];
    const Product rest = is_left ? Product{made.a, {between}} : Product{{between}, made.b};
    const std::optional<Node> taking = node_of(rest, first, last);
    const double now = flops(first) + flops(last);  // 0 where there are no elements
    const bool is_worth = taking && graph_.values[taking->outputs[0]] == graph_.values[last.outputs[0]] &&
                          now > 0 && WORTH * (flops(*node) + flops(*taking)) <= now;
    if (taking) graph_.values.pop_back();
    if (!is_worth) {
      graph_.values.pop_back();
      return std::nullopt;
    }
    const std::vector<ValueId> outputs = last.outputs;
    last = *taking;
    last.outputs = outputs;
    return node;
  }

  // With a new value of the graph for what it makes; nothing where the op does not take these.
  std::optional<Node> node_of(const Product& product, const Node& first, const Node& last) {
    const bool is_batch = first.op != &matmul_op() || last.op != &matmul_op();
    Node node{.op = is_batch ? find_op("batch_matmul") : &matmul_op(),
              .inputs = {product.a.id, product.b.id},
              .outputs = {},
              .attributes = {{"transpose_a", product.a.transpose}, {"transpose_b", product.b.transpose}},
              .placement = last.placement,
              .origin = last.origin,
              .recompute = last.recompute,
              .is_behind_losses = last.is_behind_losses};
    const auto types = node.op->infer({types_of(node.inputs), {}, node.attributes});
    if (!types) return std::nullopt;
    graph_.values.push_back((*types)[0]);
    node.outputs = {static_cast<ValueId>(graph_.values.size() - 1)};
    return node;
  }

  double flops(const Node& node) const {
    return node.op->flops({types_of(node.inputs), types_of(node.outputs), node.attributes});
  }

  std::vector<TensorType> types_of(std::span<const ValueId> ids) const {
    std::vector<TensorType> types;
    for (const ValueId id : ids) types.push_back(graph_.values[id]);
    return types;
  }

  Graph& graph_;
  std::span<const ValueId> wrt_;
  std::optional<Uses> uses_;
  std::vector<bool> wanted_;  // by others than nodes
};

void insert(Graph& graph, std::size_t place, Node node) {
  graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(place), std::move(node));
  for (OwnGradient& own : graph.own_gradients)
    if (own.end > place) ++own.end;
}

// Whether a product takes what a product made: few graphs have such, and the others are left in peace.
bool has_chain(const Graph& graph) {
  std::vector<bool> is_made(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    if (!product_of(node)) continue;
    if (is_made[node.inputs[0]] || is_made[node.inputs[1]]) return true;
    is_made[node.outputs[0]] = true;
  }
  return false;
}

}  // namespace

void reorder_products(Graph& graph, std::span<const ValueId> wrt) {
  if (!has_chain(graph)) return;
  Reordering reordering(graph, wrt);
  for (std::size_t i = 0; i < graph.nodes.size();) {
    std::optional<Node> inner = reordering.inner_of(graph.nodes[i]);
    if (!inner) {
      ++i;
      continue;
    }
    insert(graph, i, std::move(*inner));  // and it is looked at next, since it may take a product itself
    reordering.look_again();
  }
}

}  // namespace muster::graph
