// Private to tensor: extent of windows that slide over an image along one axis, of pooling and of
// convolutions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "muster/tensor/kernels/conv2d.h"
#include "muster/tensor/kernels/pool2d.h"

namespace muster::kernels {

// One window: its first pixel, which may lie in the padding, and the pixels [begin, end) inside the image.
struct Window {
  std::int64_t first = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t padded = 0;  // pixels that lie in the padded image

  std::int64_t size() const { return end - begin; }
};

// How many pixels an average divides by.
inline std::int64_t pixels_of(const Pool2dSize& size, const Window& rows, const Window& columns) {
  return size.count_include_pad ? rows.padded * columns.padded : rows.size() * columns.size();
}

struct WindowAxis {
  std::int64_t in = 0, out = 0, kernel = 1, stride = 1, pad_before = 0, pad_after = 0, dilation = 1;

  Window window(std::int64_t index) const {
    const std::int64_t first = index * stride - pad_before;
    return {.first = first,
            .begin = std::max<std::int64_t>(first, 0),
            .end = std::min(first + kernel, in),
            .padded = std::min(first + kernel, in + pad_after) - first};
  }
  Window adaptive(std::int64_t index) const {
    const std::int64_t begin = index * in / out;
    const std::int64_t end = ((index + 1) * in + out - 1) / out;
    return {.first = begin, .begin = begin, .end = end, .padded = end - begin};
  }
};

inline WindowAxis height_of(const Pool2dSize& s) {
  return {s.in_height, s.out_height, s.kernel_height, s.stride_height, s.pad_top, s.pad_bottom};
}
inline WindowAxis width_of(const Pool2dSize& s) {
  return {s.in_width, s.out_width, s.kernel_width, s.stride_width, s.pad_left, s.pad_right};
}

inline WindowAxis height_of(const Conv2dSize& s) {
  return {s.in_height, s.out_height, s.kernel_height,  s.stride_height,
          s.pad_top,   s.pad_bottom, s.dilation_height};
}
inline WindowAxis width_of(const Conv2dSize& s) {
  return {s.in_width, s.out_width, s.kernel_width, s.stride_width, s.pad_left, s.pad_right, s.dilation_width};
}

// The outputs [begin, end) along one axis whose input `out * stride + offset` lies inside [0, in).
struct Inside {
  std::int64_t begin = 0;
  std::int64_t end = 0;  // not before begin
};

inline Inside inside(std::int64_t out, std::int64_t in, std::int64_t stride, std::int64_t offset) {
  const std::int64_t begin = offset >= 0 ? 0 : std::min(out, (-offset + stride - 1) / stride);
  const std::int64_t last = in - 1 - offset;
  return {begin, last < 0 ? begin : std::max(begin, std::min(out, last / stride + 1))};
}

}  // namespace muster::kernels
