#include "muster/base/spelling.h"

#include <algorithm>
#include <vector>

namespace muster {
namespace {

constexpr std::size_t distance_max = 2;
constexpr std::size_t name_size_max = 64;

// The number of letters to insert, delete, replace or swap with a neighbour to make one from the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({replace, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::optional<std::string_view> nearest_name(std::string_view name, std::span<const std::string_view> names) {
  if (name.size() > name_size_max || names.empty()) return std::nullopt;
  std::vector<std::size_t> distances;
  for (const std::string_view known : names) distances.push_back(edit_distance(name, known));
  const auto nearest = std::min_element(distances.begin(), distances.end());
  if (*nearest > distance_max) return std::nullopt;
  return names[static_cast<std::size_t>(nearest - distances.begin())];
}

}  // namespace muster
