#include "muster/server/gradient_sum.h"

#include <algorithm>
#include <iterator>

namespace muster::server {

GradientSum::GradientSum(std::span<const TablePart> parts, std::size_t width) : width_(width) {
  for (const TablePart& part : parts) {
    std::vector<std::uint64_t> both;
    both.reserve(ids_.size() + part.ids.size());
    std::set_union(ids_.begin(), ids_.end(), part.ids.begin(), part.ids.end(), std::back_inserter(both));
    ids_ = std::move(both);
  }
  values_.resize(ids_.size() * width_);
  for (const TablePart& part : parts) add(part);
}

// Adding to zeros gives the number itself (of -0, 0: as a dense sum over workers of which others have no
// gradient).
void GradientSum::add(const TablePart& part) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < part.ids.size(); ++i) {
    while (ids_[at] != part.ids[i]) ++at;
    float* const sum = values_.data() + at * width_;
    const float* const row = part.values.data() + i * width_;
    for (std::size_t k = 0; k < width_; ++k) sum[k] += row[k];
  }
}

void GradientSum::divide_by(float divisor) {
  for (float& value : values_) value /= divisor;
}

}  // namespace muster::server
