#include "muster/graph/execution/rollback.h"

#include <algorithm>
#include <cstring>

namespace muster::graph {
namespace {

// Copied at every run: the moving statistics of a large net, but no weights, not even small ones.
constexpr std::size_t kept_bytes_max = 1 << 20;
constexpr std::size_t read_for_kept_min = 4;  // bytes that a step reads for each byte of its state

}  // namespace

void Rollback::add_step(const Node& node, const Graph& graph, std::byte* const* inputs) {
  if (!open_) return;
  ++steps_;  // the run can be dropped before this one in any case
  std::size_t read = 0, changed = 0;
  std::vector<State> states;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto& written = node.op->written;
    const std::size_t bytes = graph.values[node.inputs[i]].size_bytes();
    const bool changes = std::find(written.begin(), written.end(), i) != written.end();
    (changes ? changed : read) += bytes;
    if (changes) states.push_back({inputs + i, bytes});
  }
  const std::size_t kept = kept_.size() + changed;
  open_ = node.op->sharing != Sharing::in_place && !node.op->collective && kept <= kept_bytes_max &&
          read >= read_for_kept_min * changed;
  if (!open_) return;
  states_.insert(states_.end(), states.begin(), states.end());
  kept_.resize(kept);
}

void Rollback::keep() {
  std::byte* to = kept_.data();
  for (const State& state : states_) {
    std::memcpy(to, *state.address, state.size_bytes);
    to += state.size_bytes;
  }
}

void Rollback::put_back() const {
  const std::byte* from = kept_.data();
  for (const State& state : states_) {
    std::memcpy(*state.address, from, state.size_bytes);
    from += state.size_bytes;
  }
}

}  // namespace muster::graph
