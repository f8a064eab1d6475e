// Attention that is written op by op: softmax(scale q k^T + masks), perhaps dropout, times v, over any axes.
#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/pattern.h"

namespace muster::graph {
namespace {

// What softmax takes of the product of q and k.
struct Scores {
  std::optional<ValueId> mask;   // added, or where it fills
  std::optional<ValueId> fill;   // the number that is there instead
  std::optional<ValueId> scale;  // a number
  std::string scale_kind;        // mul or div
};

// (samples, heads, rows, depth) of other shapes: of two axes one sample and one head, of three one head each,
// of more than four all axes between are heads.
Shape with_four_axes(const Shape& shape) {
  const std::size_t rank = shape.rank();
  std::int64_t heads = 1;
  for (std::size_t i = 1; i + 2 < rank; ++i) heads *= shape[i];
  return {rank == 2 ? 1 : shape[0], heads, shape[rank - 2], shape[rank - 1]};
}

class Matcher : Pattern {
 public:
  Matcher(Graph& graph, std::span<const ValueId> wrt) : Pattern(graph, wrt) {}

  // The attention that the transpose `last` ends: with rows before heads, as q, k and v come and y goes where
  // a projection is divided into heads, so that none of them is copied.
  std::optional<Nodes> attention_of_rows(const Node& last) {
    if (!exchanges_heads(last)) return std::nullopt;
    keys_are_rows_ = false;
    return found_at(last, [&] { return of_rows(last); });
  }

  // The attention that the product `last` ends, with heads first.
  std::optional<Nodes> attention(const Node& last) {
    if (!is_product(last)) return std::nullopt;
    keys_are_rows_ = false;
    return found_at(last, [&] {
      std::optional<Nodes> made = parts(last);
      return keys_are_rows_ ? std::nullopt : made;
    });
  }

 private:
  std::optional<Nodes> of_rows(const Node& last) {
    ValueId y = last.inputs[0];
    std::optional<Nodes> found;
    if (const Node* attention = maker(y, "scaled_dot_product_attention")) found = {*attention};
    if (const Node* last_product = product(y)) found = parts(*last_product);
    if (!found || y != last.inputs[0] || found->back().attributes.get("rows_first", false))
      return std::nullopt;
    Node& made = found->back();
    for (const std::size_t i : {0, 1, 2}) {
      if (i == 1 && keys_are_rows_) continue;
      const ValueId id = made.inputs[i];
      if (wanted_[id] || !uses_.maker[id]) return std::nullopt;
      const Node& node = graph_.nodes[*uses_.maker[id]];
      if (!exchanges_heads(node) || node.placement != last.placement) return std::nullopt;
      made.inputs[i] = node.inputs[0];
    }
    made.outputs = last.outputs;
    made.recompute = last.recompute;
    made.attributes.set("rows_first", true);
    return found;
  }

  // Of the product `last`. Where one transpose (0, 2, 3, 1) makes heads of the keys and turns them, k is what
  // it takes, with rows first.
  std::optional<Nodes> parts(const Node& last) {
    last_ = &last;
    nodes_.clear();
    attributes_ = {{"scale", 1.0}};
    if (transposes(last, "a") || transposes(last, "b")) return std::nullopt;
    const std::size_t rank = graph_.values[last.outputs[0]].shape.rank();
    ValueId at = last.inputs[0];
    if (const Node* dropout = maker(at, "dropout")) {
      for (const char* which : {"keep_prob", "stream", "part"})
        if (const Attribute* found = dropout->attributes.find(which)) attributes_.set(which, *found);
      if (attributes_.find("keep_prob") == nullptr || uses_.count[dropout->outputs[1]] != 0 || rank == 2)
        return std::nullopt;  // of two axes each row has draws of its own
      at = dropout->inputs[0];
    }
    const Node* softmax = maker(at, "softmax");
    if (softmax == nullptr || graph_.values[at].shape.rank() != rank || rank < 2) return std::nullopt;
    const std::int64_t axis = softmax->attributes.get("axis", std::int64_t{-1});
    if (axis != -1 && axis != static_cast<std::int64_t>(rank) - 1) return std::nullopt;
    return through_products(softmax->inputs[0], last.inputs[1]);
  }

  static bool is_product(const Node& node) { return is(node, "batch_matmul") || is(node, "matmul"); }
  static bool exchanges_heads(const Node& node) {
    return is(node, "transpose") &&
           node.attributes.get("perm", std::vector<std::int64_t>{}) == std::vector<std::int64_t>{0, 2, 1, 3};
  }
  static bool transposes(const Node& node, const std::string& side) {
    return node.attributes.get("transpose_" + side, false);
  }

  const Node* product(ValueId& id) const {
    const Node* node = maker(id, "batch_matmul");
    return node != nullptr ? node : maker(id, "matmul");
  }

  // From the softmax to the product: masks are added, or one fills, and there is one scale.
  std::optional<Nodes> through_products(ValueId s, ValueId v) {
    Scores scores;
    const Node* products = nullptr;
    while ((products = product(s)) == nullptr) {
      const Node* node = part_of_scores(s);
      if (node == nullptr) return std::nullopt;
      const bool is_taken = is(*node, "select")                    ? take_fill(*node, scores, s)
                            : is(*node, "add") || is(*node, "sub") ? take_mask(*node, scores, s)
                                                                   : take_scale(*node, scores, s);
      if (!is_taken) return std::nullopt;
    }
    if (transposes(*products, "a")) return std::nullopt;
    const std::optional<ValueId> k = keys(*products);
    return k ? with_inputs({products->inputs[0], *k, v}, scores) : std::nullopt;
  }
  const Node* part_of_scores(ValueId& s) const {
    for (const char* kind : {"select", "add", "sub", "mul", "div"})
      if (const Node* node = maker(s, kind)) return node;
    return nullptr;
  }

  bool take_fill(const Node& select, Scores& scores, ValueId& s) {
    if (scores.mask) return false;
    const std::size_t number = is_number(select.inputs[1]) ? 1 : 2;
    const ValueId fill = select.inputs[number];
    if (!is_number(fill) || depends_[fill] || varies_[select.inputs[0]]) return false;
    attributes_.set("fills_where", number == 1);
    scores.mask = select.inputs[0];
    scores.fill = scaled(fill, scores);
    s = select.inputs[3 - number];
    return scores.fill.has_value();
  }

  bool take_mask(const Node& sum, Scores& scores, ValueId& s) {
    if (scores.fill) return false;
    const bool subtracts = is(sum, "sub");
    const bool is_first = subtracts || leads_to_product(sum.inputs[0]);
    const ValueId mask = sum.inputs[is_first ? 1 : 0];
    if (varies_[mask]) return false;
    std::optional<ValueId> added = scaled(mask, scores);
    if (added && subtracts) added = make("neg", {*added});
    if (added && scores.mask) added = make("add", {*added, *scores.mask});
    scores.mask = added;
    s = sum.inputs[is_first ? 0 : 1];
    return added.has_value();
  }

  bool take_scale(const Node& scaling, Scores& scores, ValueId& s) {
    const std::size_t number = is_number(scaling.inputs[1]) ? 1 : 0;
    const ValueId scale = scaling.inputs[number];
    if (scores.scale || !is_number(scale) || depends_[scale] || (number == 0 && is(scaling, "div")))
      return false;
    scores.scale = scale;
    scores.scale_kind = scaling.op->name;
    s = scaling.inputs[1 - number];
    return true;
  }

  // A mask or a number that stands before the scale.
  std::optional<ValueId> scaled(ValueId id, const Scores& scores) {
    return scores.scale ? make(scores.scale_kind, {id, *scores.scale}) : id;
  }

  // Whether the products come from here, and not the mask.
  bool leads_to_product(ValueId id) const {
    if (product(id) != nullptr) return true;
    const Node* node = part_of_scores(id);
    return node != nullptr && std::any_of(node->inputs.begin(), node->inputs.end(),
                                          [this](ValueId each) { return leads_to_product(each); });
  }

  // k itself, where the product takes its transpose.
  std::optional<ValueId> keys(const Node& products) {
    const ValueId right = products.inputs[1];
    if (transposes(products, "b")) return right;
    if (!uses_.maker[right] || wanted_[right]) return std::nullopt;
    const Node& node = graph_.nodes[*uses_.maker[right]];
    if (!is(node, "transpose") || node.placement != last_->placement) return std::nullopt;
    const auto perm = node.attributes.get("perm", std::vector<std::int64_t>{});
    std::vector<std::int64_t> turned(perm.size());
    std::iota(turned.begin(), turned.end(), 0);
    if (turned.size() >= 2) std::swap(turned[turned.size() - 2], turned.back());
    keys_are_rows_ = perm == std::vector<std::int64_t>{0, 2, 3, 1};
    return perm == turned || keys_are_rows_ ? std::optional(node.inputs[0]) : std::nullopt;
  }

  // The nodes for q, k and v, whose shapes the products do not broadcast but for heads that share keys.
  std::optional<Nodes> with_inputs(std::vector<ValueId> inputs, const Scores& scores) {
    const Shape q = graph_.values[inputs[0]].shape, y = graph_.values[last_->outputs[0]].shape;
    const std::size_t rank = q.rank();
    for (std::size_t i = 0; i < 3; ++i) {
      const Shape shape = graph_.values[inputs[i]].shape;
      if (shape.rank() != rank || y.rank() != rank) return std::nullopt;
      if (rank == 4) continue;
      if (!std::equal(shape.begin(), shape.end() - 2, q.begin())) return std::nullopt;
      const auto with_heads = make("reshape", {inputs[i]}, {{"shape", with_four_axes(shape).sizes()}});
      if (!with_heads) return std::nullopt;
      inputs[i] = *with_heads;
    }
    if (scores.mask) {
      const std::optional<ValueId> mask = mask_of_heads(*scores.mask, q);
      if (!mask) return std::nullopt;
      inputs.push_back(*mask);
    }
    if (scores.fill) inputs.push_back(*scores.fill);
    if (scores.scale) {
      inputs.push_back(*scores.scale);
      attributes_.set("scale_input", scores.scale_kind);
    }
    if (!is_alike(inputs)) return std::nullopt;
    return with_output(std::move(inputs));
  }

  // The mask of products of q's axes, which has to be whole or one along all axes that become heads.
  std::optional<ValueId> mask_of_heads(ValueId id, const Shape& q) {
    const Shape mask = graph_.values[id].shape;
    if (q.rank() == 4 || mask.rank() <= 2) return id;
    if (mask.rank() > q.rank()) return std::nullopt;
    std::vector<std::int64_t> sizes(q.rank() - mask.rank(), 1);
    sizes.insert(sizes.end(), mask.begin(), mask.end());
    const std::span<const std::int64_t> heads = std::span(sizes).subspan(1, sizes.size() - 3);
    const bool is_whole = std::equal(heads.begin(), heads.end(), q.begin() + 1);
    if (!is_whole && !std::all_of(heads.begin(), heads.end(), [](std::int64_t size) { return size == 1; }))
      return std::nullopt;
    return make("reshape", {id}, {{"shape", with_four_axes(Shape(sizes)).sizes()}});
  }

  // Whether the op takes these and gives what the product gave: nothing was broadcast, say.
  bool is_alike(std::span<const ValueId> inputs) const {
    std::vector<TensorType> types;
    for (const ValueId id : inputs) types.push_back(graph_.values[id]);
    if (Shape& k = types[1].shape; keys_are_rows_ && k.rank() == 4) k = {k[0], k[2], k[1], k[3]};
    const std::int64_t heads = types[0].shape[1], key_heads = types[1].shape[1];
    if (key_heads != heads && key_heads != 1) return false;  // groups of heads are no broadcasting
    const TensorType& y = graph_.values[last_->outputs[0]];
    const auto inferred = find_op("scaled_dot_product_attention")->infer({types, {}, attributes_});
    return inferred &&
           (*inferred)[0] == TensorType{y.dtype, y.shape.rank() == 4 ? y.shape : with_four_axes(y.shape)};
  }

  Nodes with_output(std::vector<ValueId> inputs) {
    const Shape y = graph_.values[last_->outputs[0]].shape;
    Node made = node("scaled_dot_product_attention", std::move(inputs), attributes_);
    made.outputs = last_->outputs;
    if (y.rank() == 4) {
      nodes_.push_back(std::move(made));
      return nodes_;
    }
    made.outputs = {new_value({graph_.values[last_->outputs[0]].dtype, with_four_axes(y)})};
    Node back = node("reshape", made.outputs, {{"shape", y.sizes()}});
    back.outputs = last_->outputs;
    nodes_.push_back(std::move(made));
    nodes_.push_back(std::move(back));
    return nodes_;
  }

  bool keys_are_rows_ = false;  // of the attention that is made
  Attributes attributes_;       // of it
};

}  // namespace

void fuse_attention(Graph& graph, std::span<const ValueId> wrt) {
  const auto write = [&](std::optional<Pattern::Nodes> (Matcher::*match)(const Node& last)) {
    Matcher matcher(graph, wrt);
    write_over(graph, [&](const Node& last) { return (matcher.*match)(last); });
  };
  const bool has_softmax = has(graph, "softmax");
  if (has_softmax) write(&Matcher::attention);
  if (has_softmax || has(graph, "scaled_dot_product_attention")) write(&Matcher::attention_of_rows);
}

}  // namespace muster::graph
