#include "muster/base/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace muster {

std::string to_string(const Shape& shape) {
  if (shape.rank() == 1) return fmt::format("({},)", shape[0]);
  return fmt::format("({})", fmt::join(shape.sizes(), ", "));
}

}  // namespace muster
