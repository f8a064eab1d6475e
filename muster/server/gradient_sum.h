// Gradient sum: the sparse gradients of several workers as one. Private to server.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/server/wire.h"

namespace muster::server {

// The ids that any part has, ascending, and the sums of their rows, which are added in the order of the
// parts. The ids of each part ascend.
class GradientSum {
 public:
  GradientSum(std::span<const TablePart> parts, std::size_t width);
  void divide_by(float divisor);

  const std::vector<std::uint64_t>& ids() const { return ids_; }
  const std::vector<float>& values() const { return values_; }

 private:
  void add(const TablePart& part);

  std::size_t width_;
  std::vector<std::uint64_t> ids_;
  std::vector<float> values_;
};

}  // namespace muster::server
