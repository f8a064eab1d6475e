// Private to graph: values that travel between the workers of a divided graph, and when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/graph/partition/places.h"

namespace muster::graph {

// A value on its way to one worker, in the state in which a run finds it between two writes.
struct Transfer {
  ValueId value = 0;
  std::size_t version = 0;  // the time of the last write before
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::size_t time = 0;       // it travels when the nodes of this time are done
  std::size_t first_use = 0;  // the time of the first node that needs it; the end: only an output does
  std::size_t message = 0;    // those with the same number travel together
};

// Nodes have times from 1 on, in program order; parts of one collective have the same. At time 0 nothing has
// run. Each worker makes its transfers in the order of this list, between its nodes by time: then the first
// transfer that is not done can always go on: workers do not deadlock even where a send waits for its
// receiver.
struct Schedule {
  std::vector<std::size_t> times;  // by node
  std::size_t end = 0;             // after all nodes
  std::vector<Transfer> transfers;

  // The transfer that brings `value`, as a node at `time` (or an output, at the end) finds it, to `rank`;
  // null when none is needed.
  const Transfer* find(ValueId value, std::size_t time, std::uint32_t rank) const;

  std::vector<std::vector<std::size_t>> writes;  // by value: the times of writes to what it names
};

// `groups`, by node: nodes in a row with the same number, not 0, are parts of one.
Schedule schedule_transfers(const Graph& graph, const Places& places, const std::vector<std::size_t>& groups,
                            std::uint32_t size);

}  // namespace muster::graph
