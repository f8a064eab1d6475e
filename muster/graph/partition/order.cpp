#include "muster/graph/partition/order.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "muster/graph/kernel.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

// What a multiply-add, a byte that is moved, and a message cost, in nanoseconds of some machine: the order is
// to be the same on all of them.
constexpr double flop_cost = 0.02;
constexpr double byte_cost = 0.1;
constexpr double node_cost = 500;
constexpr double message_cost = 8000;
constexpr std::size_t waiting_max = 2;  // results of one worker for another

// Nodes that run together: parts of one collective, or a node alone.
struct Unit {
  std::vector<std::size_t> nodes;
  std::vector<std::size_t> before;  // units that must be done
  std::vector<std::size_t> after;
  std::vector<std::uint32_t> workers;  // none: everywhere
  double cost = 0;
  double depth = 0;  // the longest way to it from where nothing has run
};

class Orderer {
 public:
  Orderer(const Graph& graph, const Places& places, std::uint32_t size)
      : graph_(graph), places_(places), size_(size) {}

  std::vector<std::size_t> run(const std::vector<std::size_t>& groups) {
    make_units(groups);
    add_dependencies();
    find_depths();
    std::vector<std::size_t> in_program_order(units_.size());
    std::iota(in_program_order.begin(), in_program_order.end(), std::size_t{0});
    if (time_furthest_first() >= time_in_program_order()) return nodes_of(in_program_order);
    std::vector<std::size_t> order = in_program_order;
    // A unit's predecessors start before it, or were chosen before it.
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(start_[a], chosen_[a]) < std::tuple(start_[b], chosen_[b]);
    });
    return nodes_of(order);
  }

 private:
  void make_units(const std::vector<std::size_t>& groups) {
    unit_of_.resize(graph_.nodes.size());
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (i == 0 || groups[i] == 0 || groups[i] != groups[i - 1]) units_.emplace_back();
      Unit& unit = units_.back();
      unit_of_[i] = units_.size() - 1;
      unit.nodes.push_back(i);
      unit.cost += cost_of(graph_, graph_.nodes[i]);
      if (places_.nodes[i] != everywhere) unit.workers.push_back(places_.nodes[i]);
    }
  }

  void depend(std::size_t later, std::size_t earlier) {
    if (later != earlier) units_[later].before.push_back(earlier);
  }

  // By value: who makes it. By what it names: who wrote that last, and who has read it since.
  void add_dependencies() {
    const std::vector<ValueId> roots = roots_of(graph_);
    constexpr std::size_t none = SIZE_MAX;
    std::vector<std::size_t> maker(graph_.values.size(), none);
    std::vector<std::size_t> writer(graph_.values.size(), none);
    std::vector<std::vector<std::size_t>> readers(graph_.values.size());
    std::size_t last_collective = none;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const std::size_t unit = unit_of_[i];
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        const ValueId root = roots[node.inputs[k]];
        if (maker[node.inputs[k]] != none) depend(unit, maker[node.inputs[k]]);
        if (writer[root] != none) depend(unit, writer[root]);
        if (!node.op->writes(k)) {
          readers[root].push_back(unit);
          continue;
        }
        for (const std::size_t reader : readers[root]) depend(unit, reader);
        readers[root].clear();
        writer[root] = unit;
      }
      for (const ValueId id : node.outputs) maker[id] = unit;
      if (!node.op->collective) continue;
      if (last_collective != none) depend(unit, last_collective);
      last_collective = unit;
    }
    for (std::size_t i = 0; i < units_.size(); ++i) {
      auto& before = units_[i].before;
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      for (const std::size_t earlier : before) units_[earlier].after.push_back(i);
    }
  }

  void find_depths() {
    for (Unit& unit : units_) {
      for (const std::size_t earlier : unit.before)
        unit.depth = std::max(unit.depth, units_[earlier].depth + units_[earlier].cost);
    }
  }

  // When its workers are free for it and what it needs has come.
  double start_of(const Unit& unit, double ready) const {
    double start = ready;
    for (const std::uint32_t worker : unit.workers) start = std::max(start, free_[worker]);
    return start;
  }

  double travel_between(const Unit& earlier, const Unit& later) const {
    const bool stays = earlier.workers.empty() || later.workers.empty() || earlier.workers == later.workers;
    return stays ? 0 : message_cost;
  }

  double time_in_program_order() {
    free_.assign(size_, 0);
    std::vector<double> done(units_.size(), 0);
    for (std::size_t i = 0; i < units_.size(); ++i) {
      double ready = 0;
      for (const std::size_t earlier : units_[i].before)
        ready = std::max(ready, done[earlier] + travel_between(units_[earlier], units_[i]));
      done[i] = start_of(units_[i], ready) + units_[i].cost;
      for (const std::uint32_t worker : units_[i].workers) free_[worker] = done[i];
    }
    return done.empty() ? 0 : *std::max_element(done.begin(), done.end());
  }

  // By worker that sends and worker that receives: results that the receiver has not begun to use.
  std::size_t& waiting(std::uint32_t from, std::uint32_t to) { return waiting_[from * size_ + to]; }

  template <class Use>
  void for_each_value_transfer(const Unit& earlier, const Unit& later, Use&& use) {
    if (earlier.workers.size() == 1 && later.workers.size() == 1 && earlier.workers != later.workers)
      use(earlier.workers.front(), later.workers.front());
  }

  // Whether a worker would run ahead of another one that does not keep up, and hold all its results.
  bool runs_ahead(const Unit& unit) {
    bool found = false;
    for (const std::size_t later : unit.after)
      for_each_value_transfer(unit, units_[later], [&](std::uint32_t from, std::uint32_t to) {
        found = found || waiting(from, to) >= waiting_max;
      });
    return found;
  }

  void count_waiting(std::size_t chosen) {
    std::vector<std::uint32_t> receivers;
    for (const std::size_t later : units_[chosen].after)
      for_each_value_transfer(units_[chosen], units_[later],
                              [&](std::uint32_t, std::uint32_t to) { receivers.push_back(to); });
    std::sort(receivers.begin(), receivers.end());
    receivers.erase(std::unique(receivers.begin(), receivers.end()), receivers.end());
    for (const std::uint32_t to : receivers) ++waiting(units_[chosen].workers.front(), to);
    for (const std::size_t earlier : units_[chosen].before)
      for_each_value_transfer(units_[earlier], units_[chosen], [&](std::uint32_t from, std::uint32_t to) {
        if (taken_.emplace(earlier, to).second) --waiting(from, to);
      });
  }

  // Of the units that run not too far ahead, always the one that can start first; of several the furthest
  // into the graph, then the one that became ready first, then the last of the program, whose way back comes
  // first.
  double time_furthest_first() {
    free_.assign(size_, 0);
    waiting_.assign(std::size_t{size_} * size_, 0);
    taken_.clear();
    start_.assign(units_.size(), 0);
    chosen_.assign(units_.size(), 0);
    std::vector<double> ready_at(units_.size(), 0);
    std::vector<std::size_t> missing(units_.size());
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < units_.size(); ++i)
      if ((missing[i] = units_[i].before.size()) == 0) ready.push_back(i);
    double end = 0;
    for (std::size_t count = 0; !ready.empty(); ++count) {
      const auto key = [&](std::size_t i) {
        return std::tuple(runs_ahead(units_[i]), start_of(units_[i], ready_at[i]), -units_[i].depth,
                          ready_at[i], -static_cast<double>(i));
      };
      const auto next = std::min_element(ready.begin(), ready.end(),
                                         [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
      const std::size_t chosen = *next;
      *next = ready.back();
      ready.pop_back();
      const Unit& unit = units_[chosen];
      start_[chosen] = start_of(unit, ready_at[chosen]);
      chosen_[chosen] = count;
      count_waiting(chosen);
      const double done = start_[chosen] + unit.cost;
      for (const std::uint32_t worker : unit.workers) free_[worker] = done;
      end = std::max(end, done);
      for (const std::size_t later : unit.after) {
        ready_at[later] = std::max(ready_at[later], done + travel_between(unit, units_[later]));
        if (--missing[later] == 0) ready.push_back(later);
      }
    }
    return end;
  }

  std::vector<std::size_t> nodes_of(const std::vector<std::size_t>& order) const {
    std::vector<std::size_t> nodes;
    for (const std::size_t unit : order)
      nodes.insert(nodes.end(), units_[unit].nodes.begin(), units_[unit].nodes.end());
    return nodes;
  }

  const Graph& graph_;
  const Places& places_;
  std::uint32_t size_;
  std::vector<Unit> units_;
  std::vector<std::size_t> unit_of_;  // by node
  std::vector<double> free_;          // by worker: from when on
  std::vector<double> start_;         // by unit, in the last simulation
  std::vector<std::size_t> chosen_;   // by unit: as the how-manieth
  std::vector<std::size_t> waiting_;
  std::set<std::pair<std::size_t, std::uint32_t>> taken_;  // units whose results a worker has begun to use
};

}  // namespace

double cost_of(const Graph& graph, const Node& node) {
  if (node.op->sharing == Sharing::view) return 0;
  std::vector<TensorType> inputs, outputs;
  double bytes = 0;
  for (const ValueId id : node.inputs) inputs.push_back(graph.values[id]);
  for (const ValueId id : node.outputs) outputs.push_back(graph.values[id]);
  for (const auto* types : {&inputs, &outputs})
    for (const TensorType& type : *types) bytes += static_cast<double>(type.size_bytes());
  const Signature signature{.inputs = inputs, .outputs = outputs, .attributes = node.attributes};
  const double flops = node.op->flops != nullptr ? node.op->flops(signature) : 0;
  return node_cost + flop_cost * flops + byte_cost * bytes;
}

std::vector<std::size_t> order_for_workers(const Graph& graph, const Places& places,
                                           const std::vector<std::size_t>& groups, std::uint32_t size) {
  return Orderer(graph, places, size).run(groups);
}

}  // namespace muster::graph
