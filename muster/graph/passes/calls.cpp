// Calls that gather and reduce pieces of parameters (Zero): each is a rendezvous of all ranks, however little
// it moves.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "muster/graph/ops/ops.h"
#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

// What was gathered stays for the next use of it while no more than so much was gathered in between: the end
// of the forward pass and the begin of the backward pass use the same parameters.
constexpr std::size_t kept_bytes = std::size_t{4} << 20;
// Of all ranks. Copying what is larger costs more than a call of its own.
constexpr std::size_t joined_bytes_max = std::size_t{256} << 10;

const Op& all_gather_op() {
  static const Op& op = required_op("all_gather");
  return op;
}

const Op& reduce_scatter_op() {
  static const Op& op = required_op("reduce_scatter");
  return op;
}

// A parameter and the attributes of a call: it may be gathered in several groups.
using Attributed = std::pair<ValueId, std::string>;

class Gathers {
 public:
  explicit Gathers(Graph& graph)
      : graph_(graph), roots_(roots_of(graph)), is_parameter_(graph.values.size()) {
    for (const auto& [id, parameter] : graph.parameters) is_parameter_[id] = true;
  }

  // One gather serves all uses that are near.
  void keep() {
    std::vector<ValueId> now(graph_.values.size());
    for (ValueId id = 0; id < now.size(); ++id) now[id] = id;
    std::map<Attributed, std::pair<ValueId, std::size_t>> kept;  // the value, and what was gathered with it
    std::size_t gathered = 0;
    std::vector<Node> nodes;
    for (Node& node : graph_.nodes) {
      for (ValueId& id : node.inputs) id = now[id];
      if (!is_gather(node)) {
        forget_written(node, kept);
        nodes.push_back(std::move(node));
        continue;
      }
      const Attributed key{node.inputs[0], to_string(node.attributes)};
      const auto found = kept.find(key);
      if (found != kept.end() && gathered - found->second.second <= kept_bytes) {
        now[node.outputs[0]] = found->second.first;
        continue;
      }
      gathered += bytes_of(graph_, node.outputs);
      kept.insert_or_assign(key, std::pair(node.outputs[0], gathered));
      nodes.push_back(std::move(node));
    }
    for (ValueId& id : graph_.outputs) id = now[id];
    graph_.nodes = std::move(nodes);
  }

  // Small ones go with the first of them.
  void join() {
    std::vector<bool> is_taken(graph_.nodes.size(), false);
    std::vector<Node> nodes;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (is_taken[i]) continue;
      Node& node = graph_.nodes[i];
      if (is_gather(node)) take_followers(i, is_taken);
      nodes.push_back(std::move(node));
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  bool is_gather(const Node& node) const {
    return node.op == &all_gather_op() && node.inputs.size() == 1 && is_parameter_[node.inputs[0]];
  }

  void forget_written(const Node& node, std::map<Attributed, std::pair<ValueId, std::size_t>>& kept) const {
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.op->writes(i))
        std::erase_if(kept, [&](const auto& each) { return each.first.first == roots_[node.inputs[i]]; });
  }

  void take_followers(std::size_t first, std::vector<bool>& is_taken) {
    Node& call = graph_.nodes[first];
    std::size_t bytes = bytes_of(graph_, call.outputs);
    std::set<ValueId> written;
    for (std::size_t i = first + 1; i < graph_.nodes.size() && bytes < joined_bytes_max; ++i) {
      const Node& node = graph_.nodes[i];
      for (std::size_t k = 0; k < node.inputs.size(); ++k)
        if (node.op->writes(k)) written.insert(roots_[node.inputs[k]]);
      if (is_taken[i] || !is_gather(node) || node.attributes != call.attributes) continue;
      const std::size_t more = bytes_of(graph_, node.outputs);
      if (bytes + more > joined_bytes_max || written.contains(node.inputs[0])) continue;
      bytes += more;
      call.inputs.push_back(node.inputs[0]);
      call.outputs.push_back(node.outputs[0]);
      is_taken[i] = true;
    }
  }

  Graph& graph_;
  std::vector<ValueId> roots_;
  std::vector<bool> is_parameter_;  // by value
};

// Calls that reduce go as far back as their inputs are made, with the views of what they give; small ones
// together, before anything reads what one of them gives.
class Scatters {
 public:
  explicit Scatters(Graph& graph) : graph_(graph), uses_(uses_of(graph)), users_(graph.values.size()) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      for (const ValueId id : graph.nodes[i].inputs) users_[id].push_back(i);
  }

  void run() {
    std::vector<Moved> calls;
    std::vector<bool> is_moved(graph_.nodes.size(), false);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_movable(graph_.nodes[i])) continue;
      calls.push_back(moved(i));
      is_moved[i] = true;
      for (const std::size_t view : calls.back().views) is_moved[view] = true;
    }
    std::ranges::stable_sort(calls, {}, &Moved::place);
    for (Moved& call : calls) add(std::move(call));
    put_in_place(is_moved);
  }

 private:
  struct Moved {
    Node call = {};
    std::vector<std::size_t> views = {};  // of what it gives
    std::size_t place = 0;                // the node behind which it may come
    std::size_t end = 0;                  // the first node that reads what it gives
  };

  // What a node makes that is no parameter does not change any more.
  bool is_movable(const Node& node) const {
    if (node.op != &reduce_scatter_op() || node.inputs.size() != 1) return false;
    const auto maker = uses_.maker[node.inputs[0]];
    return maker && graph_.nodes[*maker].op->sharing != Sharing::in_place;
  }

  Moved moved(std::size_t index) const {
    Moved made{.call = graph_.nodes[index],
               .place = *uses_.maker[graph_.nodes[index].inputs[0]],
               .end = graph_.nodes.size()};
    std::vector<ValueId> given = made.call.outputs;
    for (std::size_t i = 0; i < given.size(); ++i)
      for (const std::size_t user : users_[given[i]]) {
        const Node& node = graph_.nodes[user];
        if (node.op->sharing != Sharing::view) {
          made.end = std::min(made.end, is_movable(node) ? *uses_.maker[given[i]] : user);
          continue;
        }
        made.views.push_back(user);
        given.push_back(node.outputs[0]);
      }
    return made;
  }

  // To the small call that is open, which then goes behind what it reads last; or a new one.
  void add(Moved next) {
    const std::size_t bytes = bytes_of(graph_, next.call.inputs);
    const bool is_small = bytes < joined_bytes_max;
    if (is_small && open_ && bytes_ + bytes <= joined_bytes_max && goes_with(next, made_[*open_])) {
      Moved& call = made_[*open_];
      call.call.inputs.push_back(next.call.inputs[0]);
      call.call.outputs.push_back(next.call.outputs[0]);
      call.views.insert(call.views.end(), next.views.begin(), next.views.end());
      call.place = next.place;
      call.end = std::min(call.end, next.end);
      bytes_ += bytes;
      return;
    }
    if (is_small) open_ = made_.size(), bytes_ = bytes;
    made_.push_back(std::move(next));
  }

  bool goes_with(const Moved& next, const Moved& open) const {
    return next.place < open.end && next.call.attributes == open.call.attributes &&
           graph_.values[next.call.inputs[0]].dtype == graph_.values[open.call.inputs[0]].dtype;
  }

  void put_in_place(const std::vector<bool>& is_moved) {
    std::vector<std::vector<Node>> after(graph_.nodes.size());
    for (Moved& each : made_) {
      after[each.place].push_back(std::move(each.call));
      for (const std::size_t view : each.views) after[each.place].push_back(graph_.nodes[view]);
    }
    std::vector<Node> nodes;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_moved[i]) nodes.push_back(std::move(graph_.nodes[i]));
      std::ranges::move(after[i], std::back_inserter(nodes));
    }
    graph_.nodes = std::move(nodes);
  }

  Graph& graph_;
  Uses uses_;
  std::vector<std::vector<std::size_t>> users_;  // by value: nodes
  std::vector<Moved> made_;
  std::optional<std::size_t> open_;  // of these, that takes more
  std::size_t bytes_ = 0;            // of it
};

}  // namespace

void join_calls(Graph& graph) {
  Gathers gathers(graph);
  gathers.keep();
  gathers.join();
  Scatters(graph).run();
}

}  // namespace muster::graph
