#include "muster/server/row_lists.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace muster::server {

Result<std::uint64_t> RowLists::add(const Batch& answer) {
  if (answer.parts.size() != 1 || answer.parts[0].values.size() != answer.parts[0].ids.size() * width_)
    return fail(Code::corrupt, "a parameter server has answered something else than a list of rows");
  const TablePart& part = answer.parts[0];
  listed_.ids.insert(listed_.ids.end(), part.ids.begin(), part.ids.end());
  listed_.values.insert(listed_.values.end(), part.values.begin(), part.values.end());
  return part.steps;
}

ParameterClient::ListedRows RowLists::take() {
  std::vector<std::size_t> order(listed_.ids.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return listed_.ids[i]; });
  ParameterClient::ListedRows sorted;
  sorted.ids.reserve(listed_.ids.size());
  sorted.values.reserve(listed_.values.size());
  for (const std::size_t i : order) {
    sorted.ids.push_back(listed_.ids[i]);
    const auto row = listed_.values.begin() + static_cast<std::ptrdiff_t>(i * width_);
    sorted.values.insert(sorted.values.end(), row, row + static_cast<std::ptrdiff_t>(width_));
  }
  return sorted;
}

}  // namespace muster::server
