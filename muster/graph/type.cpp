#include "muster/graph/type.h"

#include <fmt/format.h>

namespace muster::graph {

std::string to_string(const TensorType& type) {
  return fmt::format("{} {}", muster::to_string(type.dtype), muster::to_string(type.shape));
}

}  // namespace muster::graph
