#include "muster/graph/partition/transfers.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

// The last write before `time`; 0: there is none.
std::size_t version_at(const std::vector<std::size_t>& writes, std::size_t time) {
  const auto after = std::lower_bound(writes.begin(), writes.end(), time);
  return after == writes.begin() ? 0 : *(after - 1);
}

class Scheduler {
 public:
  Scheduler(const Graph& graph, const Places& places, std::uint32_t size)
      : graph_(graph), places_(places), size_(size), made_at_(graph.values.size(), 0) {}

  Schedule run(const std::vector<std::size_t>& groups) {
    count_times(groups);
    note_writes();
    add_uses();
    add_outputs();
    for (const auto& [key, transfer] : wanted_) made_.transfers.push_back(transfer);
    choose_times();
    number_messages();
    return std::move(made_);
  }

 private:
  void count_times(const std::vector<std::size_t>& groups) {
    std::size_t time = 0;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const bool goes_on = i > 0 && groups[i] != 0 && groups[i] == groups[i - 1];
      made_.times.push_back(goes_on ? time : ++time);
      for (const ValueId id : graph_.nodes[i].outputs) made_at_[id] = time;
    }
    made_.end = time + 1;
  }

  void note_writes() {
    const std::vector<ValueId> roots = roots_of(graph_);
    std::vector<std::vector<std::size_t>> by_root(graph_.values.size());
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      for (std::size_t k = 0; k < node.inputs.size(); ++k)
        if (node.op->writes(k)) by_root[roots[node.inputs[k]]].push_back(made_.times[i]);
    }
    for (ValueId id = 0; id < roots.size(); ++id) made_.writes.push_back(by_root[roots[id]]);
  }

  void want(ValueId id, std::size_t time, std::uint32_t to) {
    const std::uint32_t from = places_.values[id];
    if (from == everywhere || from == to) return;
    const std::size_t version = version_at(made_.writes[id], time);
    Transfer& transfer = wanted_[{id, version, to}];
    const std::size_t first_use = transfer.first_use == 0 ? time : std::min(transfer.first_use, time);
    transfer = {.value = id,
                .version = version,
                .from = from,
                .to = to,
                .time = std::max(made_at_[id], version),
                .first_use = first_use};
  }

  void add_uses() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (places_.nodes[i] != everywhere)
        for (const ValueId id : graph_.nodes[i].inputs) want(id, made_.times[i], places_.nodes[i]);
  }

  void add_outputs() {
    for (std::size_t i = 0; i < graph_.notes.size(); ++i)
      if (graph_.notes[i].everywhere)
        for (std::uint32_t rank = 0; rank < size_; ++rank) want(graph_.outputs[i], made_.end, rank);
  }

  // As soon as the value is there; but all that one node needs travels together, and a value that no node
  // needs delays none.
  void choose_times() {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::size_t>, std::size_t> last;
    for (const Transfer& transfer : made_.transfers) {
      std::size_t& time = last[{transfer.from, transfer.to, transfer.first_use}];
      time = std::max(time, transfer.time);
    }
    for (Transfer& transfer : made_.transfers) {
      const std::size_t wanted = transfer.first_use == made_.end
                                     ? made_.end
                                     : last[{transfer.from, transfer.to, transfer.first_use}];
      if (wanted < next_write(transfer)) transfer.time = wanted;
    }
  }

  std::size_t next_write(const Transfer& transfer) const {
    const auto& writes = made_.writes[transfer.value];
    const auto next = std::upper_bound(writes.begin(), writes.end(), transfer.version);
    return next == writes.end() ? SIZE_MAX : *next;
  }

  void number_messages() {
    const auto key = [](const Transfer& transfer) {
      return std::tuple(transfer.time, transfer.from, transfer.to);
    };
    std::stable_sort(made_.transfers.begin(), made_.transfers.end(),
                     [&](const Transfer& a, const Transfer& b) { return key(a) < key(b); });
    std::size_t message = 0;
    for (std::size_t i = 0; i < made_.transfers.size(); ++i) {
      if (i > 0 && key(made_.transfers[i]) != key(made_.transfers[i - 1])) ++message;
      made_.transfers[i].message = message;
    }
  }

  const Graph& graph_;
  const Places& places_;
  std::uint32_t size_;
  std::vector<std::size_t> made_at_;  // by value
  std::map<std::tuple<ValueId, std::size_t, std::uint32_t>, Transfer> wanted_;
  Schedule made_;
};

}  // namespace

const Transfer* Schedule::find(ValueId value, std::size_t time, std::uint32_t rank) const {
  const std::size_t version = version_at(writes[value], time);
  const auto found = std::find_if(transfers.begin(), transfers.end(), [&](const Transfer& transfer) {
    return transfer.value == value && transfer.version == version && transfer.to == rank;
  });
  return found == transfers.end() ? nullptr : &*found;
}

Schedule schedule_transfers(const Graph& graph, const Places& places, const std::vector<std::size_t>& groups,
                            std::uint32_t size) {
  return Scheduler(graph, places, size).run(groups);
}

}  // namespace muster::graph
