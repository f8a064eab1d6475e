// Private to graph: on which worker each node of a placed graph runs and each value is made.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/graph/nodes.h"

namespace muster::graph {

// In place of a rank: every worker computes it for itself, from constants and counters that all have.
inline constexpr std::uint32_t everywhere = UINT32_MAX;

struct Places {
  std::vector<std::uint32_t> nodes;   // by node: a rank, or everywhere
  std::vector<std::uint32_t> values;  // by value: where it is made, or lives
  std::vector<std::string> origins;   // by parameter of the graph: what it was placed with; empty: nothing
  std::uint32_t reader = 0;           // whose inputs count
};

// - A placed node runs where it is placed; but a relu that one kernel computes with the batch_norm before it
//   runs with that.
// - A parameter lives where it already has its home, or else with its first placed user, or else with its
//   first user. What writes to it runs there, placed or not.
// - An input lives where its tensor's home is (`input_homes`), or else on the reader: the worker of the first
//   placed node that depends on the first such input.
// - What is neither placed nor depends on any of these, such as a learning rate from a counter of steps, is
//   everywhere.
// - All else goes where the fewest bytes travel.
// An error names what is placed on a worker that `size` workers do not have, or writes to what lives
// elsewhere.
Result<Places> find_places(const Graph& graph, std::uint32_t size,
                           std::span<const std::optional<std::uint32_t>> input_homes);

}  // namespace muster::graph
