#include "muster/graph/partition/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/transfer.h"
#include "muster/graph/partition/describe.h"
#include "muster/graph/partition/order.h"
#include "muster/graph/partition/reductions.h"
#include "muster/graph/partition/transfers.h"
#include "muster/graph/passes/passes.h"

namespace muster::graph {
namespace {

// Makes the graph of one worker out of the whole, in the order of times.
class StageMaker {
 public:
  StageMaker(const Graph& whole, const std::vector<std::size_t>& groups, const Places& places,
             const Schedule& schedule, std::uint32_t rank)
      : whole_(whole), groups_(groups), places_(places), schedule_(schedule), rank_(rank) {
    part_.name = whole.name;
    part_.values = whole.values;
    part_.inputs = whole.inputs;
    for (const Node& node : whole.nodes)
      if (node.is_behind_losses) behind_losses_.insert(node.outputs.begin(), node.outputs.end());
  }

  Graph run() {
    std::size_t next = 0;
    transfer_until(0, next);
    for (std::size_t i = 0; i < whole_.nodes.size(); ++i) {
      transfer_until(schedule_.times[i] - 1, next);
      if (runs_here(i)) add(i);
    }
    transfer_until(schedule_.end, next);
    add_outputs();
    keep_used();
    return std::move(part_);
  }

  std::vector<StageOutput> take_outputs() { return std::move(outputs_); }
  std::vector<std::pair<ValueId, ValueId>> received() const {
    std::vector<std::pair<ValueId, ValueId>> made;
    for (const auto& [transfer, id] : received_) made.emplace_back(id, transfer->value);
    return made;
  }

 private:
  bool runs_here(std::size_t node) const {
    return places_.nodes[node] == everywhere || places_.nodes[node] == rank_;
  }
  bool is_here(ValueId id) const { return places_.values[id] == everywhere || places_.values[id] == rank_; }

  // The transfers of this worker from the `next` one on that come before the nodes after `time`.
  void transfer_until(std::size_t time, std::size_t& next) {
    const auto& all = schedule_.transfers;
    while (next < all.size() && all[next].time <= time) {
      const Transfer& first = all[next];
      Node node;
      for (; next < all.size() && all[next].message == first.message; ++next)
        if (first.from == rank_)
          node.inputs.push_back(all[next].value);
        else if (first.to == rank_)
          node.outputs.push_back(receive(all[next]));
      if (first.from == rank_ || first.to == rank_) finish_transfer(first, std::move(node));
    }
  }

  ValueId receive(const Transfer& transfer) {
    const auto made = static_cast<ValueId>(part_.values.size());
    part_.values.push_back(TensorType(whole_.values[transfer.value]));
    received_[&transfer] = made;
    return made;
  }

  void finish_transfer(const Transfer& first, Node node) {
    std::string what;
    node.is_behind_losses = behind_losses_.contains(first.value);
    for (const Transfer& transfer : schedule_.transfers)
      if (transfer.message == first.message)
        what += fmt::format("{}{} {}", what.empty() ? "" : ", ", to_string(whole_.values[transfer.value]),
                            name_of(whole_, transfer.value));
    const bool sends = first.from == rank_;
    node.op = sends ? &send_op() : &receive_op();
    node.attributes = transfer_attributes(sends ? first.to : first.from, std::move(what));
    part_.nodes.push_back(std::move(node));
  }

  // The id under which a node at `time` finds a value here.
  ValueId here(ValueId id, std::size_t time) const {
    if (is_here(id)) return id;
    const Transfer* transfer = schedule_.find(id, time, rank_);
    MUSTER_CHECK(transfer != nullptr, "a value of another worker was not sent");
    return received_.at(transfer);
  }

  void add(std::size_t index) {
    Node node = whole_.nodes[index];
    for (ValueId& id : node.inputs) id = here(id, schedule_.times[index]);
    const bool goes_on = groups_[index] != 0 && groups_[index] == last_group_;
    last_group_ = groups_[index];
    if (goes_on)
      join_reduction(part_.nodes.back(), node);
    else
      part_.nodes.push_back(std::move(node));
  }

  void add_outputs() {
    for (std::size_t i = 0; i < whole_.outputs.size(); ++i) {
      const ValueId id = whole_.outputs[i];
      StageOutput& output = outputs_.emplace_back();
      const bool shared =
          places_.values[id] == everywhere || (i < whole_.notes.size() && whole_.notes[i].everywhere);
      if (!shared) output.home = places_.values[id];
      if (shared || is_here(id)) {
        output.index = part_.outputs.size();
        part_.outputs.push_back(here(id, schedule_.end));
      } else {
        output.absent = absent_output(whole_, i, *output.home, rank_);
      }
    }
    for (const OutputRange& range : whole_.contiguous) {
      OutputRange kept{.first = 0, .count = 0};
      for (std::size_t i = range.first; i < range.first + range.count; ++i)
        if (!outputs_[i].absent) {
          if (kept.count == 0) kept.first = outputs_[i].index;
          ++kept.count;
        }
      if (kept.count > 0) part_.contiguous.push_back(kept);
    }
  }

  // What is used here of what other runs leave behind; nothing else is ever made.
  void keep_used() {
    for (Node& node : part_.nodes) finish_reduction(node);
    remove_dead(part_);
    std::vector<bool> used(part_.values.size(), false);
    for (const Node& node : part_.nodes)
      for (const ValueId id : node.inputs) used[id] = true;
    for (const ValueId id : part_.outputs) used[id] = true;
    for (const auto& entry : whole_.captured)
      if (used[entry.first]) part_.captured.push_back(entry);
    for (const auto& entry : whole_.parameters)
      if (used[entry.first]) part_.parameters.push_back(entry);
  }

  const Graph& whole_;
  const std::vector<std::size_t>& groups_;
  const Places& places_;
  const Schedule& schedule_;
  std::uint32_t rank_;
  Graph part_;
  std::vector<StageOutput> outputs_;
  std::map<const Transfer*, ValueId> received_;
  std::set<ValueId> behind_losses_;  // of the whole graph
  std::size_t last_group_ = 0;
};

void reorder(Graph& graph, std::vector<std::size_t>& groups, Places& places, std::uint32_t size) {
  const Graph before = graph;
  const auto groups_before = groups;
  const auto places_before = places.nodes;
  std::size_t at = 0;
  for (const std::size_t i : order_for_workers(before, places, groups, size)) {
    graph.nodes[at] = before.nodes[i];
    groups[at] = groups_before[i];
    places.nodes[at++] = places_before[i];
  }
}

std::vector<std::pair<ParameterPtr, Parameter::Home>> homes_of(const Graph& whole, const Places& places,
                                                               std::uint32_t rank) {
  std::vector<std::pair<ParameterPtr, Parameter::Home>> homes;
  for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
    const auto& [id, parameter] = whole.parameters[i];
    const std::uint32_t home = places.values[id];
    if (home == everywhere || parameter->home()) continue;
    homes.emplace_back(
        parameter, Parameter::Home{.rank = home,
                                   .is_here = home == rank,
                                   .reason = absent_parameter(*parameter, home, places.origins[i], rank)});
  }
  return homes;
}

}  // namespace

bool is_placed(const Graph& graph, std::span<const std::optional<std::uint32_t>> input_homes) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.placement != nullptr; }) ||
         std::any_of(graph.parameters.begin(), graph.parameters.end(),
                     [](const auto& entry) { return entry.second->home().has_value(); }) ||
         std::any_of(graph.captured.begin(), graph.captured.end(),
                     [](const auto& entry) { return entry.second.home().has_value(); }) ||
         std::any_of(input_homes.begin(), input_homes.end(),
                     [](const auto& home) { return home.has_value(); });
}

Result<StageGraph> partition(Graph whole, const StageIndex& stage_index,
                             std::span<const std::optional<std::uint32_t>> input_homes) {
  remove_dead(whole);
  fuse_casts(whole);  // of what is rounded on one worker and widened on another, too
  Graph split = whole;
  std::vector<std::size_t> groups = split_reductions(split);
  MUSTER_TRY(Places places, find_places(split, stage_index.size, input_homes));
  reorder(split, groups, places, stage_index.size);
  const Schedule schedule = schedule_transfers(split, places, groups, stage_index.size);
  StageMaker maker(split, groups, places, schedule, stage_index.rank);
  StageGraph made{.graph = maker.run(),
                  .outputs = {},
                  .received = maker.received(),
                  .whole = std::move(whole),
                  .transferred = {},
                  .homes = {},
                  .partition = {}};
  made.outputs = maker.take_outputs();
  for (const Transfer& transfer : schedule.transfers) made.transferred.push_back(transfer.value);
  made.homes = homes_of(split, places, stage_index.rank);
  made.partition = describe(split, places, schedule, stage_index.size);
  return made;
}

Result<Partition> divided_as_placed(const Graph& whole) {
  std::uint32_t size = 1;
  for (const Node& node : whole.nodes)
    if (node.placement != nullptr) size = std::max(size, node.placement->rank + 1);
  MUSTER_TRY(StageGraph made, partition(whole, {.rank = 0, .size = size}));
  return std::move(made.partition);
}

}  // namespace muster::graph
