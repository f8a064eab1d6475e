// Attention that is written op by op: softmax(scale q k^T + mask), perhaps dropout, times v.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/graph/kernel.h"
#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

// By value: whether it depends on one of `from`.
std::vector<bool> dependants(const Graph& graph, std::span<const ValueId> from) {
  std::vector<bool> found(graph.values.size(), false);
  for (const ValueId id : from) found[id] = true;
  for (const Node& node : graph.nodes)
    if (std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return found[id]; }))
      for (const ValueId id : node.outputs) found[id] = true;
  return found;
}

class Matcher {
 public:
  Matcher(const Graph& graph, std::span<const ValueId> wrt)
      : graph_(graph),
        uses_(live_uses(graph)),
        varies_(dependants(graph, wrt)),
        wanted_(values_looked_at(graph, wrt)) {
    std::vector<ValueId> given = graph.inputs;
    for (const auto& [id, parameter] : graph.parameters) given.push_back(id);
    depends_ = dependants(graph, given);
  }

  // The attention that the transpose `last` ends: with rows before heads, as q, k and v come and y goes where
  // a projection is divided into heads, so that none of them is copied.
  std::optional<Node> attention_of_rows(const Node& last) {
    last_ = &last;
    if (!exchanges_heads(last)) return std::nullopt;
    ValueId y = last.inputs[0];
    std::optional<Node> found;
    keys_are_rows_ = false;
    if (const Node* attention = maker(y, "scaled_dot_product_attention")) found = *attention;
    if (const Node* product = maker(y, "batch_matmul")) found = parts(*product);
    if (!found || y != last.inputs[0] || found->attributes.get("rows_first", false)) return std::nullopt;
    Node made = *found;
    for (const std::size_t i : {0, 1, 2}) {
      if (i == 1 && keys_are_rows_) continue;
      const ValueId id = made.inputs[i];
      if (wanted_[id] || !uses_.maker[id]) return std::nullopt;
      const Node& node = graph_.nodes[*uses_.maker[id]];
      if (!exchanges_heads(node) || node.placement != last.placement) return std::nullopt;
      made.inputs[i] = node.inputs[0];
    }
    made.outputs = last.outputs;
    made.attributes.set("rows_first", true);
    return made;
  }

  // The attention that the product `last` ends, with heads first.
  std::optional<Node> attention(const Node& last) {
    std::optional<Node> made = parts(last);
    return keys_are_rows_ ? std::nullopt : made;
  }

 private:
  // Of the product `last`. Where one transpose (0, 2, 3, 1) makes heads of the keys and turns them, k is what
  // it takes, with rows first.
  std::optional<Node> parts(const Node& last) {
    keys_are_rows_ = false;
    last_ = &last;
    made_ = {.op = find_op("scaled_dot_product_attention"),
             .inputs = {},
             .outputs = last.outputs,
             .attributes = {{"scale", 1.0}},
             .placement = last.placement,
             .origin = last.origin};
    if (!is(last, "batch_matmul") || transposes(last, "a") || transposes(last, "b")) return std::nullopt;
    ValueId at = last.inputs[0];
    if (const Node* dropout = maker(at, "dropout")) {
      for (const char* which : {"keep_prob", "stream", "part"})
        if (const Attribute* found = dropout->attributes.find(which)) made_.attributes.set(which, *found);
      if (made_.attributes.find("keep_prob") == nullptr || uses_.count[dropout->outputs[1]] != 0)
        return std::nullopt;
      at = dropout->inputs[0];
    }
    const Node* softmax = maker(at, "softmax");
    const std::int64_t rank = static_cast<std::int64_t>(graph_.values[at].shape.rank());
    if (softmax == nullptr) return std::nullopt;
    const std::int64_t axis = softmax->attributes.get("axis", std::int64_t{-1});
    if (rank != 4 || (axis != -1 && axis != rank - 1)) return std::nullopt;
    return through_products(softmax->inputs[0], last.inputs[1]);
  }

  static bool is(const Node& node, std::string_view name) { return node.op->name == name; }
  static bool exchanges_heads(const Node& node) {
    return is(node, "transpose") &&
           node.attributes.get("perm", std::vector<std::int64_t>{}) == std::vector<std::int64_t>{0, 2, 1, 3};
  }
  static bool transposes(const Node& node, const std::string& side) {
    return node.attributes.get("transpose_" + side, false);
  }

  // The node that makes `id` for `last_` alone, perhaps through a change of precision, when it is of this op.
  // `id` becomes what it makes.
  const Node* maker(ValueId& id, std::string_view name) const {
    ValueId at = id;
    for (int casts = 0; casts < 2; ++casts) {
      if (uses_.count[at] != 1 || wanted_[at] || !uses_.maker[at]) return nullptr;
      const Node& node = graph_.nodes[*uses_.maker[at]];
      if (node.placement != last_->placement || node.outputs[0] != at) return nullptr;
      if (is(node, name)) {
        id = at;
        return &node;
      }
      if (!is(node, "cast") || !is_floating(graph_.values[node.inputs[0]].dtype)) return nullptr;
      at = node.inputs[0];
    }
    return nullptr;
  }

  std::optional<Node> through_products(ValueId s, ValueId v) {
    std::optional<ValueId> mask, fill, scale;
    if (const Node* select = maker(s, "select")) {
      const std::size_t number = is_number(select->inputs[1]) ? 1 : 2;
      mask = select->inputs[0];
      fill = select->inputs[number];
      if (!is_number(*fill) || depends_[*fill] || varies_[*mask]) return std::nullopt;
      made_.attributes.set("fills_where", number == 1);
      s = select->inputs[3 - number];
    } else if (const Node* sum = maker(s, "add")) {
      const bool is_first = is_scores(sum->inputs[0]);
      mask = sum->inputs[is_first ? 1 : 0];
      s = sum->inputs[is_first ? 0 : 1];
      if (varies_[*mask]) return std::nullopt;
    }
    for (const char* kind : {"mul", "div"})
      if (const Node* scaling = maker(s, kind)) {
        const std::size_t number = is_number(scaling->inputs[1]) ? 1 : 0;
        scale = scaling->inputs[number];
        if (!is_number(*scale) || depends_[*scale] || (number == 0 && kind[0] == 'd')) return std::nullopt;
        made_.attributes.set("scale_input", std::string(kind));
        s = scaling->inputs[1 - number];
        break;
      }
    const Node* products = maker(s, "batch_matmul");
    if (products == nullptr || transposes(*products, "a")) return std::nullopt;
    const std::optional<ValueId> k = keys(*products);
    if (!k) return std::nullopt;
    made_.inputs = {products->inputs[0], *k, v};
    if (mask) made_.inputs.push_back(*mask);
    if (fill) made_.inputs.push_back(*fill);
    if (scale) made_.inputs.push_back(*scale);
    return is_alike() ? std::optional(made_) : std::nullopt;
  }

  // Whether the products come from here, and not the mask.
  bool is_scores(ValueId id) const {
    ValueId at = id;
    return maker(at, "mul") != nullptr || maker(at, "div") != nullptr || maker(at, "batch_matmul") != nullptr;
  }
  bool is_number(ValueId id) const { return graph_.values[id].shape.elements() == 1; }

  // k itself, where the product takes its transpose.
  std::optional<ValueId> keys(const Node& products) {
    const ValueId right = products.inputs[1];
    if (transposes(products, "b")) return right;
    if (!uses_.maker[right]) return std::nullopt;
    const Node& node = graph_.nodes[*uses_.maker[right]];
    const auto perm = node.attributes.get("perm", std::vector<std::int64_t>{});
    keys_are_rows_ = is(node, "transpose") && perm == std::vector<std::int64_t>{0, 2, 3, 1};
    const bool swaps = is(node, "transpose") && perm == std::vector<std::int64_t>{0, 1, 3, 2};
    if (wanted_[right]) return std::nullopt;
    return (swaps || keys_are_rows_) && node.placement == last_->placement ? std::optional(node.inputs[0])
                                                                           : std::nullopt;
  }

  // Whether the op takes these and gives what the product gave: nothing was broadcast, say.
  bool is_alike() const {
    std::vector<TensorType> types;
    for (const ValueId id : made_.inputs) types.push_back(graph_.values[id]);
    if (Shape& k = types[1].shape; keys_are_rows_ && k.rank() == 4) k = {k[0], k[2], k[1], k[3]};
    if (types[0].shape.rank() != 4 || types[1].shape.rank() != 4 || types[2].shape.rank() != 4 ||
        types[0].shape[1] != types[1].shape[1])
      return false;
    const auto inferred = made_.op->infer({types, {}, made_.attributes});
    return inferred && (*inferred)[0] == graph_.values[made_.outputs[0]];
  }

  const Graph& graph_;
  Uses uses_;
  std::vector<bool> varies_;    // with what gradients are taken for
  std::vector<bool> depends_;   // on inputs or parameters
  std::vector<bool> wanted_;    // by others than nodes
  bool keys_are_rows_ = false;  // of the node that is made
  const Node* last_ = nullptr;
  Node made_;
};

// The last node of each attention is written over; what it was made of is removed as dead where the graph is
// compiled.
void write_over(Graph& graph, std::span<const ValueId> wrt,
                std::optional<Node> (Matcher::*match)(const Node& last)) {
  std::vector<std::pair<std::size_t, Node>> found;
  {
    Matcher matcher(graph, wrt);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      if (std::optional<Node> made = (matcher.*match)(graph.nodes[i])) {
        made->recompute = graph.nodes[i].recompute;
        found.emplace_back(i, std::move(*made));
      }
  }
  for (auto& [index, node] : found) graph.nodes[index] = std::move(node);
}

bool has(const Graph& graph, std::string_view op) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return node.op->name == op; });
}

}  // namespace

void fuse_attention(Graph& graph, std::span<const ValueId> wrt) {
  const bool has_softmax = has(graph, "softmax");
  if (has_softmax) write_over(graph, wrt, &Matcher::attention);
  if (has_softmax || has(graph, "scaled_dot_product_attention"))
    write_over(graph, wrt, &Matcher::attention_of_rows);
}

}  // namespace muster::graph
