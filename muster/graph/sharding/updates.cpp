#include "muster/graph/sharding/updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "muster/graph/execution/updates.h"
#include "muster/graph/ops/ops.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {

bool is_elementwise_update(const Op& op) { return is_update(op); }

namespace {

class UpdateDivider {
 public:
  explicit UpdateDivider(Graph& graph) : graph_(graph), uses_(uses_of(graph)), roots_(roots_of(graph)) {
    for (const auto& [id, parameter] : graph.parameters)
      if (parameter->share()) {
        divided_[id] = parameter.get();
        whole_[id] = graph.values[id];
        graph.values[id] = parameter->held_type();
      }
  }

  Result<> run() {
    if (divided_.empty()) return {};
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (const Node& node : before)
      if (node.op == &all_reduce_op()) reduced_.insert(node.outputs.begin(), node.outputs.end());
    for (Node& node : before) MUSTER_TRY_VOID(add(node));
    finish();
    std::erase_if(graph_.nodes,
                  [&](const Node& node) { return node.op == &all_reduce_op() && node.inputs.empty(); });
    for (ValueId& id : graph_.outputs)
      if (divided_.contains(roots_[id])) id = gathered(id);
    return {};
  }

 private:
  const Parameter* divided(ValueId id) const {
    const auto found = divided_.find(roots_[id]);
    return found == divided_.end() ? nullptr : found->second;
  }

  Result<> add(Node& node) {
    if (touches_pending(node)) finish();
    if (const Parameter* divides = state_or_self(node)) {
      if (is_update(*node.op)) return update(node, *divides), Result<>{};
      if (node.op == &required_op("assign") && divided(node.inputs[0]) != nullptr)
        return assign(node), Result<>{};
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Parameter* parameter = divided(node.inputs[i]);
      if (parameter == nullptr) continue;
      if (node.op->writes(i))
        return fail(
            Code::not_provided,
            fmt::format("{} writes '{}', which is divided over the workers, and cannot do so in pieces: "
                        "leave its optimizer whole (Zero level 0)",
                        node.op->name, parameter->name()));
      node.inputs[i] = gathered(node.inputs[i]);
    }
    // A view of what was gathered is no name of the piece any more.
    if (node.op->sharing == Sharing::view) roots_[node.outputs[0]] = roots_[node.inputs[0]];
    // Moving statistics are written where they are made: who normalizes gives what the next nodes read.
    if (node.op->sharing == Sharing::in_place)
      later_.push_back(std::move(node));
    else
      graph_.nodes.push_back(std::move(node));
    return {};
  }

  // A divided parameter among what `node` reads or writes.
  const Parameter* state_or_self(const Node& node) const {
    for (const ValueId id : node.inputs)
      if (const Parameter* parameter = divided(id)) return parameter;
    return nullptr;
  }

  // Writes wait for all collective calls, unless a node reads what they write.
  bool touches_pending(const Node& node) const {
    return std::ranges::any_of(node.inputs, [&](ValueId id) {
      return std::ranges::any_of(written_, [&](ValueId other) { return roots_[other] == roots_[id]; }) ||
             std::ranges::any_of(later_, [&](const Node& waiting) {
               for (std::size_t i = 0; i < waiting.inputs.size(); ++i)
                 if (waiting.op->writes(i) && roots_[waiting.inputs[i]] == roots_[id]) return true;
               return false;
             });
    });
  }

  void update(Node& node, const Parameter& divides) {
    const ValueId parameter = node.inputs[0];
    const bool is_whole = divided(parameter) == nullptr;
    const TensorType type = is_whole ? graph_.values[parameter] : whole_.at(roots_[parameter]);
    const Parameter::Share& share = *divides.share();
    std::vector<std::pair<ValueId, ValueId>> states;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      ValueId& id = node.inputs[i];
      if (divided(id) != nullptr) {
        if (!is_whole) continue;
        states.emplace_back(id, copied(id));  // written for good behind the calls
        id = states.back().second;
      } else if (type_of(id).shape == type.shape) {
        id = i == 1 && share.scatters_gradients ? scattered(id, share) : piece(id, share);
      } else if (is_whole && node.op->writes(i)) {
        states.emplace_back(id, copied(id));
        id = states.back().second;
      }
    }
    const ValueId before = node.outputs[0];
    const TensorType held{type.dtype, share.layout.piece_shape(type.shape)};
    if (!is_whole) {
      graph_.values[before] = held;
      later_.push_back(std::move(node));
      return;
    }
    const ValueId made = value(held);
    node.outputs = {made};
    graph_.nodes.push_back(std::move(node));
    new_pieces_.push_back({parameter, before, made, share.layout.mesh->size()});
    written_.push_back(parameter);
    for (const auto& [id, copy] : states) {
      later_.push_back(assignment(id, copy));
      written_.push_back(id);
    }
  }

  void assign(Node& node) {
    node.inputs[1] = piece(node.inputs[1], *divided(node.inputs[0])->share());
    graph_.values[node.outputs[0]] = graph_.values[node.inputs[0]];
    later_.push_back(std::move(node));
  }

  // The calls, then what is written for good.
  void finish() {
    for (const NewPiece& each : new_pieces_) {
      const ValueId whole = value(graph_.values[each.parameter]);
      graph_.nodes.push_back(call("all_gather", each.made, whole, each.ranks));
      Node node = assignment(each.parameter, whole);
      node.outputs = {each.updated};
      later_.push_back(std::move(node));
    }
    for (Node& node : later_) graph_.nodes.push_back(std::move(node));
    new_pieces_.clear();
    later_.clear();
    written_.clear();
  }

  ValueId value(TensorType type) {
    graph_.values.push_back(std::move(type));
    roots_.push_back(static_cast<ValueId>(roots_.size()));
    return roots_.back();
  }
  const TensorType& type_of(ValueId id) const { return graph_.values[id]; }

  static Node call(std::string_view op, ValueId from, ValueId to, std::uint32_t ranks) {
    return {.op = &required_op(op),
            .inputs = {from},
            .outputs = {to},
            .attributes = {{"ranks", std::int64_t{ranks}}}};
  }

  Node assignment(ValueId parameter, ValueId from) {
    return {.op = &required_op("assign"),
            .inputs = {parameter, from},
            .outputs = {value(type_of(parameter))},
            .attributes = {}};
  }

  ValueId gathered(ValueId id) {
    const Parameter::Share& share = *divided(id)->share();
    const ValueId whole = value(whole_.at(roots_[id]));
    graph_.nodes.push_back(call("all_gather", id, whole, share.layout.mesh->size()));
    return whole;
  }

  // `size` is its own: that of a value in the graph would move when another is added.
  ValueId part(ValueId id, std::vector<std::int64_t> begin, Shape size) {
    const ValueId made = value({type_of(id).dtype, size});
    graph_.nodes.push_back({.op = &required_op("slice"),
                            .inputs = {id},
                            .outputs = {made},
                            .attributes = {{"begin", begin},
                                           {"size", size.sizes()},
                                           {"strides", std::vector<std::int64_t>(begin.size(), 1)}}});
    return made;
  }

  ValueId copied(ValueId id) {
    return part(id, std::vector<std::int64_t>(type_of(id).shape.rank(), 0), type_of(id).shape);
  }

  ValueId piece(ValueId id, const Parameter::Share& share) {
    const Shape size = share.layout.piece_shape(type_of(id).shape);
    std::vector<std::int64_t> begin(size.rank());
    for (std::size_t dim = 0; dim < begin.size(); ++dim)
      begin[dim] = share.layout.index(dim, share.rank) * size[dim];
    return part(id, std::move(begin), size);
  }

  // A gradient that all ranks reduce, and no other node asks for, is reduced in pieces.
  ValueId scattered(ValueId id, const Parameter::Share& share) {
    if (!reduced_.contains(id) || uses_.count[id] != 1) return piece(id, share);
    const auto node = std::ranges::find_if(
        graph_.nodes, [&](const Node& each) { return std::ranges::count(each.outputs, id) > 0; });
    const auto at = std::ranges::find(node->outputs, id) - node->outputs.begin();
    const ValueId from = node->inputs[static_cast<std::size_t>(at)];
    node->inputs.erase(node->inputs.begin() + at);
    node->outputs.erase(node->outputs.begin() + at);
    const ValueId made = value({type_of(id).dtype, share.layout.piece_shape(type_of(id).shape)});
    Node scatter = call("reduce_scatter", from, made, share.layout.mesh->size());
    scatter.attributes.set("reduction", node->attributes.get("reduction", std::string("sum")));
    graph_.nodes.push_back(std::move(scatter));
    return made;
  }

  struct NewPiece {
    ValueId parameter, updated, made;
    std::uint32_t ranks;
  };

  Graph& graph_;
  Uses uses_;
  std::vector<ValueId> roots_;
  std::map<ValueId, const Parameter*> divided_;
  std::map<ValueId, TensorType> whole_;  // the types of these
  std::set<ValueId> reduced_;            // what an all_reduce gives
  std::vector<NewPiece> new_pieces_;
  std::vector<Node> later_;
  std::vector<ValueId> written_;  // by what waits in new_pieces_ and later_
};

}  // namespace

Result<> divide_updates(Graph& graph) { return UpdateDivider(graph).run(); }

}  // namespace muster::graph
