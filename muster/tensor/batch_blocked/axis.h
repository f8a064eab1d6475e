// Private to batch_blocked: pixels of a convolution that meet along one axis, forwards and backwards.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/tensor/kernels/window.h"

namespace muster::batch_blocked {

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

// [0, total) in as few pieces of at most `most` as there can be, all about as large.
class Pieces {
 public:
  Pieces(std::int64_t total, std::int64_t most) : total_(total), count_((total + most - 1) / most) {}
  std::int64_t count() const { return count_; }
  Range operator[](std::int64_t piece) const {
    return {total_ * piece / count_, total_ * (piece + 1) / count_};
  }

 private:
  std::int64_t total_;
  std::int64_t count_;
};

// Output t < count lies at out_first + t out_step and is a sum over the taps k < taps: of input
// t in_step + in_first + k in_tap, where that lies inside [0, in_size), times the weight's tap
// tap_first + k tap_step. in_tap is positive.
struct Axis {
  std::int64_t count = 0;
  std::int64_t out_first = 0;
  std::int64_t out_step = 1;
  std::int64_t in_size = 0;
  std::int64_t in_first = 0;
  std::int64_t in_step = 1;
  std::int64_t in_tap = 1;
  std::int64_t taps = 0;
  std::int64_t tap_first = 0;
  std::int64_t tap_step = 1;

  std::int64_t input(std::int64_t t, std::int64_t k) const { return t * in_step + in_first + k * in_tap; }
  // The taps whose input lies inside.
  Range taps_inside(std::int64_t t) const;
};

Axis forward_axis(const kernels::WindowAxis& window);
// From dy to dx: pixels of dx that lie a stride apart meet the same taps, so that there is an axis for each
// of the first `stride` pixels.
std::vector<Axis> backward_axes(const kernels::WindowAxis& window);

}  // namespace muster::batch_blocked
