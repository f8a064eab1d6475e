#include "muster/graph/parts.h"

#include <numeric>

namespace muster::graph {

std::size_t Parts::crossing_bytes() const {
  return std::accumulate(
      crossings.begin(), crossings.end(), std::size_t{0},
      [](std::size_t sum, const Crossing& crossing) { return sum + crossing.type.size_bytes(); });
}

}  // namespace muster::graph
