#include "muster/graph/run.h"

#include <array>
#include <utility>

namespace muster::graph {
namespace {
constexpr std::array<std::pair<Reduction, std::string_view>, 4> names{{
    {Reduction::sum, "sum"},
    {Reduction::mean, "mean"},
    {Reduction::max, "max"},
    {Reduction::min, "min"},
}};
}  // namespace

std::string_view to_string(Reduction reduction) {
  for (const auto& [value, name] : names)
    if (value == reduction) return name;
  return "unknown";
}

std::optional<Reduction> reduction_from_string(std::string_view text) {
  for (const auto& [value, name] : names)
    if (name == text) return value;
  return std::nullopt;
}

}  // namespace muster::graph
