// Private to graph: last point at which a run of a plan can be dropped as if it had never begun.
#pragma once

#include <cstddef>
#include <vector>

#include "muster/graph/nodes.h"

namespace muster::graph {

// A run can be dropped until its first step that updates parameters in place or takes part in a collective.
// Steps before that may write a little state beside their outputs (moving statistics), which is kept
// meanwhile.
class Rollback {
 public:
  // The next step of the plan: its node, and where the addresses of its inputs will stand.
  void add_step(const Node& node, const Graph& graph, std::byte* const* inputs);

  // Whether the run can be dropped before step `index`.
  bool covers(std::size_t index) const { return index < steps_; }
  // At the beginning of a run, when the addresses stand; and where it is dropped.
  void keep();
  void put_back() const;

 private:
  struct State {
    std::byte* const* address = nullptr;
    std::size_t size_bytes = 0;
  };

  std::size_t steps_ = 0;
  bool open_ = true;
  std::vector<State> states_;
  std::vector<std::byte> kept_;
};

}  // namespace muster::graph
