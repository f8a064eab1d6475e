#include "muster/tensor/batch_blocked/axis.h"

#include <algorithm>
#include <numeric>

namespace muster::batch_blocked {

using kernels::WindowAxis;

namespace {

std::int64_t ceil_divided(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

// Pixel r of dx and those a stride apart. Pixel i meets tap q where i + pad - q dilation is a multiple of the
// stride; these taps lie a fixed step apart, and the last of them meets the first pixel of dy.
Axis backward_axis(const WindowAxis& w, std::int64_t r) {
  const std::int64_t step = w.stride / std::gcd(w.stride, w.dilation);
  Axis axis{.count = ceil_divided(w.in - r, w.stride),
            .out_first = r,
            .out_step = w.stride,
            .in_size = w.out,
            .in_tap = step * w.dilation / w.stride,
            .tap_step = -step};
  for (std::int64_t q = 0; q < w.kernel; ++q) {
    if ((r + w.pad_before - q * w.dilation) % w.stride != 0) continue;
    ++axis.taps;
    axis.tap_first = q;
    axis.in_first = (r + w.pad_before - q * w.dilation) / w.stride;
  }
  return axis;
}

}  // namespace

Range Axis::taps_inside(std::int64_t t) const {
  const std::int64_t first = input(t, 0);
  const std::int64_t begin = first >= 0 ? 0 : std::min(ceil_divided(-first, in_tap), taps);
  const std::int64_t end = std::min(ceil_divided(in_size - first, in_tap), taps);
  return {begin, std::max(begin, end)};
}

Axis forward_axis(const WindowAxis& w) {
  return {.count = w.out,
          .in_size = w.in,
          .in_first = -w.pad_before,
          .in_step = w.stride,
          .in_tap = w.dilation,
          .taps = w.kernel};
}

std::vector<Axis> backward_axes(const WindowAxis& w) {
  std::vector<Axis> axes;
  for (std::int64_t r = 0; r < std::min(w.stride, w.in); ++r) axes.push_back(backward_axis(w, r));
  return axes;
}

}  // namespace muster::batch_blocked
