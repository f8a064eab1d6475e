// Private to graph: on which workers the unplaced pieces of a placed graph cost the fewest bytes of transfer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace muster::graph {

// A value: made by one piece, used by others. It travels once to each worker that has users.
struct Flow {
  std::size_t from = 0;
  std::vector<std::size_t> to;
  std::size_t bytes = 0;
};

// The rank of each piece; `fixed` ones keep theirs. Pieces that nothing holds anywhere go to `otherwise`. Not
// always the best choice of all, but always the same one.
std::vector<std::uint32_t> fewest_bytes(std::span<const std::optional<std::uint32_t>> fixed,
                                        std::span<const Flow> flows, std::uint32_t otherwise);

// All that travels when the pieces are at `ranks`.
std::size_t transferred_bytes(std::span<const std::uint32_t> ranks, std::span<const Flow> flows);

}  // namespace muster::graph
