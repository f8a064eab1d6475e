#include "muster/graph/amounts.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string_view>

namespace muster::graph {
namespace {

std::string scaled(double value, double step, std::span<const std::string_view> units) {
  std::size_t unit = 0;
  for (; value >= step && unit + 1 < units.size(); ++unit) value /= step;
  const bool whole = unit == 0 || value >= 100;
  return fmt::format("{:.{}f} {}", value, whole ? 0 : 1, units[unit]);
}

}  // namespace

std::string bytes_text(std::size_t bytes) {
  constexpr std::array<std::string_view, 4> units{"B", "KiB", "MiB", "GiB"};
  return scaled(static_cast<double>(bytes), 1024, units);
}

std::string flops_text(double flops) {
  constexpr std::array<std::string_view, 5> units{"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"};
  return scaled(flops, 1000, units);
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace muster::graph
