#include "muster/graph/partition/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "muster/graph/ops/image.h"
#include "muster/graph/ops/ops.h"
#include "muster/graph/partition/search.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

using Rank = std::uint32_t;

struct Fixed {
  Rank rank = 0;
  std::string origin;  // what holds it there
};

std::string text_of(const Fixed& fixed) {
  return fixed.origin.empty() ? fmt::format("worker {}", fixed.rank)
                              : fmt::format("worker {} ({})", fixed.rank, fixed.origin);
}

// Pieces of the graph: its nodes, then its values that no node makes. Those that must be on one worker are
// joined.
class Placer {
 public:
  Placer(const Graph& graph, std::uint32_t size, std::span<const std::optional<Rank>> input_homes)
      : graph_(graph),
        size_(size),
        input_homes_(input_homes.begin(), input_homes.end()),
        roots_(roots_of(graph)),
        maker_(uses_of(graph).maker),
        is_everywhere_(graph.nodes.size() + graph.values.size(), false),
        joined_with_(is_everywhere_.size()),
        fixed_(is_everywhere_.size()),
        parameter_of_(graph.values.size(), nullptr),
        origins_(graph.parameters.size()),
        with_norm_(graph.nodes.size()) {
    input_homes_.resize(graph.inputs.size());
    std::iota(joined_with_.begin(), joined_with_.end(), std::size_t{0});
    for (const auto& [id, parameter] : graph.parameters) parameter_of_[id] = parameter.get();
  }

  Result<Places> run() {
    MUSTER_TRY_VOID(check_ranks());
    find_everywhere();
    find_relus_of_norms();
    reader_ = find_reader();
    fix();
    MUSTER_TRY_VOID(join_writers());
    return places();
  }

 private:
  std::size_t piece_of(ValueId id) const { return maker_[id] ? *maker_[id] : graph_.nodes.size() + id; }

  std::size_t top(std::size_t piece) const {
    while (joined_with_[piece] != piece) piece = joined_with_[piece];
    return piece;
  }

  // A piece as early in the program as it can be stands for all.
  void join(std::size_t a, std::size_t b) {
    a = top(a);
    b = top(b);
    if (a > b) std::swap(a, b);
    if (a == b) return;
    joined_with_[b] = a;
    if (!fixed_[a]) fixed_[a] = fixed_[b];
  }

  // An update goes where its parameter is, wherever it is traced.
  bool is_held(std::size_t index) const {
    const Node& node = graph_.nodes[index];
    return node.placement != nullptr && !updates_parameter(node) && !with_norm_[index];
  }
  bool updates_parameter(const Node& node) const {
    return node.op->sharing == Sharing::in_place && parameter_of_[roots_[node.inputs[0]]] != nullptr;
  }

  Result<> check_ranks() const {
    const auto outside = [this](const std::string& what, Rank rank) {
      return fail(
          Code::invalid_argument,
          fmt::format("{} is placed on worker {}, but there {}: place it on one of these", what, rank,
                      size_ == 1 ? "is only worker 0" : fmt::format("are workers 0 to {} only", size_ - 1)));
    };
    for (const Node& node : graph_.nodes)
      if (node.placement != nullptr && node.placement->rank >= size_)
        return outside(node.placement->origin.empty() ? std::string(node.op->name) : node.placement->origin,
                       node.placement->rank);
    for (const Node& node : graph_.nodes) MUSTER_TRY_VOID(check_inside(node));
    for (const auto& [id, parameter] : graph_.parameters)
      if (parameter->home() && parameter->home()->rank >= size_)
        return outside(fmt::format("parameter '{}'", parameter->name()), parameter->home()->rank);
    for (std::size_t i = 0; i < input_homes_.size(); ++i)
      if (input_homes_[i] && *input_homes_[i] >= size_)
        return outside(fmt::format("input {}", i), *input_homes_[i]);
    return {};
  }

  // What a cond or a while_loop computes runs where the node does.
  static Result<> check_inside(const Node& node) {
    for (const auto& [name, attribute] : node.attributes.entries()) {
      const auto* inside = std::get_if<GraphPtr>(&attribute);
      if (inside == nullptr || *inside == nullptr) continue;
      for (const Node& inner : (*inside)->nodes)
        if (inner.placement != nullptr && node.placement != nullptr &&
            inner.placement->rank != node.placement->rank)
          return fail(Code::not_provided,
                      fmt::format("{} holds {} and {}: all that it computes must be placed on one worker",
                                  node.op->name, text_of({node.placement->rank, node.placement->origin}),
                                  text_of({inner.placement->rank, inner.placement->origin})));
    }
    return {};
  }

  // ---- What is everywhere ----

  void find_everywhere() {
    std::vector<bool> has_placed_user(graph_.values.size(), false);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      is_everywhere_[i] = node.placement == nullptr && !node.op->collective;
      if (node.placement == nullptr) continue;
      for (const ValueId id : node.inputs) has_placed_user[roots_[id]] = true;
    }
    for (const auto& [id, tensor] : graph_.captured) is_everywhere_[piece_of(id)] = !tensor.home();
    for (const auto& [id, parameter] : graph_.parameters)
      is_everywhere_[piece_of(id)] =
          !parameter->requires_grad() && !parameter->home() && !has_placed_user[id];
    while (drop_from_everywhere()) {
    }
  }

  // Whether anything was found to depend on what one worker has.
  bool drop_from_everywhere() {
    bool any = false;
    const auto drop = [&](std::size_t piece) {
      any = any || is_everywhere_[piece];
      is_everywhere_[piece] = false;
    };
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      for (const ValueId id : node.inputs)
        if (!is_everywhere_[piece_of(id)]) drop(i);
      if (is_everywhere_[i]) continue;
      for (std::size_t k = 0; k < node.inputs.size(); ++k)
        if (node.op->writes(k)) drop(piece_of(roots_[node.inputs[k]]));
    }
    return any;
  }

  // ---- What is held somewhere ----

  // One kernel computes a batch_norm in training with the relu behind it, and its bits are not those of two.
  // So the relu runs with the norm, wherever it is placed, and so does its way back.
  void find_relus_of_norms() {
    const Uses uses = uses_of(graph_);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.op == &relu_op() && uses.count[node.inputs[0]] == 1 && maker_[node.inputs[0]]) {
        const std::size_t maker = *maker_[node.inputs[0]];
        const Node& norm = graph_.nodes[maker];
        if (norm.op == &batch_norm_op() && norm.attributes.get("training", false)) with_norm_[i] = maker;
      } else if (node.op == &relu_grad_op() && maker_[node.inputs[1]]) {
        with_norm_[i] = with_norm_[*maker_[node.inputs[1]]];
      }
    }
  }

  Rank find_reader() const {
    const auto first = std::find(input_homes_.begin(), input_homes_.end(), std::nullopt);
    if (first == input_homes_.end()) return 0;
    std::vector<bool> depends(graph_.values.size(), false);
    depends[graph_.inputs[static_cast<std::size_t>(first - input_homes_.begin())]] = true;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return depends[id]; }))
        continue;
      if (is_held(i)) return node.placement->rank;
      for (const ValueId id : node.inputs)
        if (parameter_of_[id] != nullptr && parameter_of_[id]->home()) return parameter_of_[id]->home()->rank;
      for (const ValueId id : node.outputs) depends[id] = true;
    }
    return 0;
  }

  void fix() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (is_held(i)) fixed_[i] = Fixed{graph_.nodes[i].placement->rank, graph_.nodes[i].placement->origin};
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (with_norm_[i]) join(i, *with_norm_[i]);
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      fixed_[piece_of(graph_.inputs[i])] = Fixed{input_homes_[i].value_or(reader_), {}};
    for (const auto& [id, tensor] : graph_.captured)
      if (tensor.home()) fixed_[piece_of(id)] = Fixed{*tensor.home(), {}};
    for (std::size_t i = 0; i < graph_.parameters.size(); ++i) fix_parameter(i);
  }

  void fix_parameter(std::size_t index) {
    const auto& [id, parameter] = graph_.parameters[index];
    const std::size_t piece = piece_of(id);
    if (is_everywhere_[piece]) return;
    const Node* user = placed_user(id, true);
    if (user == nullptr) user = placed_user(id, false);
    if (user != nullptr) origins_[index] = user->placement->origin;
    if (parameter->home()) {
      fixed_[piece] = Fixed{parameter->home()->rank, origins_[index]};
    } else if (user != nullptr) {
      fixed_[piece] = Fixed{user->placement->rank, user->placement->origin};
    } else {
      const auto reads = [id = id](const Node& node) {
        return std::find(node.inputs.begin(), node.inputs.end(), id) != node.inputs.end();
      };
      const auto first = std::find_if(graph_.nodes.begin(), graph_.nodes.end(), reads);
      if (first != graph_.nodes.end()) join(piece, static_cast<std::size_t>(first - graph_.nodes.begin()));
    }
  }

  // The first that uses the value, updates only if nothing else is asked for.
  const Node* placed_user(ValueId id, bool computes) const {
    for (const Node& node : graph_.nodes)
      if (node.placement != nullptr && updates_parameter(node) != computes &&
          std::find(node.inputs.begin(), node.inputs.end(), id) != node.inputs.end())
        return &node;
    return nullptr;
  }

  Result<> join_writers() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (is_everywhere_[i]) continue;
      const Node& node = graph_.nodes[i];
      for (std::size_t k = 0; k < node.inputs.size(); ++k)
        if (node.op->writes(k)) MUSTER_TRY_VOID(join_writer(i, roots_[node.inputs[k]]));
    }
    return {};
  }

  Result<> join_writer(std::size_t node, ValueId root) {
    const auto& here = fixed_[top(node)];
    const auto& there = fixed_[top(piece_of(root))];
    if (here && there && here->rank != there->rank) {
      const Parameter* parameter = parameter_of_[root];
      return fail(Code::not_provided,
                  fmt::format("{} on {} writes {}, which is on {}: place them on the same worker",
                              graph_.nodes[node].op->name, text_of(*here),
                              parameter != nullptr ? fmt::format("parameter '{}'", parameter->name())
                                                   : fmt::format("%{}", root),
                              text_of(*there)));
    }
    join(node, piece_of(root));
    return {};
  }

  // ---- All else ----

  // What is everywhere takes no part, and what every worker gets anyway costs the same wherever it is made.
  std::vector<Flow> flows(const std::vector<std::size_t>& numbers) const {
    std::vector<bool> is_shared(graph_.values.size(), false);
    for (std::size_t i = 0; i < graph_.notes.size(); ++i)
      if (graph_.notes[i].everywhere) is_shared[graph_.outputs[i]] = true;
    std::vector<std::vector<std::size_t>> users(graph_.values.size());
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      for (const ValueId id : graph_.nodes[i].inputs)
        if (!is_everywhere_[piece_of(id)]) users[id].push_back(numbers[top(i)]);
    std::vector<Flow> made;
    for (ValueId id = 0; id < users.size(); ++id) {
      const std::size_t from = numbers[top(piece_of(id))];
      std::vector<std::size_t>& to = users[id];
      std::sort(to.begin(), to.end());
      to.erase(std::unique(to.begin(), to.end()), to.end());
      std::erase(to, from);
      if (!to.empty() && !is_shared[id])
        made.push_back({from, std::move(to), graph_.values[id].size_bytes()});
    }
    return made;
  }

  Places places() const {
    std::vector<std::size_t> numbers(
        joined_with_.size());  // of pieces that stand for all they are joined with
    std::vector<std::optional<Rank>> held;
    for (std::size_t piece = 0; piece < joined_with_.size(); ++piece) {
      if (top(piece) != piece) continue;
      numbers[piece] = held.size();
      held.push_back(fixed_[piece] ? std::optional(fixed_[piece]->rank) : std::nullopt);
    }
    const std::vector<Rank> ranks = fewest_bytes(held, flows(numbers), reader_);
    const auto rank_of = [&](std::size_t piece) {
      return is_everywhere_[piece] ? everywhere : ranks[numbers[top(piece)]];
    };
    Places made{.nodes = {}, .values = {}, .origins = origins_, .reader = reader_};
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) made.nodes.push_back(rank_of(i));
    for (ValueId id = 0; id < graph_.values.size(); ++id) made.values.push_back(rank_of(piece_of(id)));
    return made;
  }

  const Graph& graph_;
  std::uint32_t size_;
  std::vector<std::optional<Rank>> input_homes_;
  std::vector<ValueId> roots_;
  std::vector<std::optional<std::size_t>> maker_;
  std::vector<bool> is_everywhere_;             // by piece, like the next two
  std::vector<std::size_t> joined_with_;        // itself, or one that stands for it
  std::vector<std::optional<Fixed>> fixed_;     // of pieces that stand for all
  std::vector<const Parameter*> parameter_of_;  // by value; null: it is none
  std::vector<std::string> origins_;
  std::vector<std::optional<std::size_t>> with_norm_;  // by node: a batch_norm that it belongs to
  Rank reader_ = 0;
};

}  // namespace

Result<Places> find_places(const Graph& graph, std::uint32_t size,
                           std::span<const std::optional<std::uint32_t>> input_homes) {
  return Placer(graph, size, input_homes).run();
}

}  // namespace muster::graph
