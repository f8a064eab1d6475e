// Windows over images: how kernels of convolutions and pools lie on the two spatial axes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::nn {

// A height and a width; one number stands for both.
struct Size2d {
  std::int64_t height = 1;
  std::int64_t width = 1;

  Size2d(std::int64_t both) : height(both), width(both) {}  // NOLINT: implicit by design
  Size2d(std::int64_t of_height, std::int64_t of_width) : height(of_height), width(of_width) {}
  std::vector<std::int64_t> list() const { return {height, width}; }
};

// same: zeros around so that the output has ceil(input / stride) places, the odd one at the end; valid:
// windows inside only; pad: as `Padding` says.
enum class PadMode { same, valid, pad };
Result<PadMode> pad_mode_from(std::string_view name);

// Rows and columns added around an image; one number stands for all sides.
struct Padding {
  std::int64_t top = 0;
  std::int64_t bottom = 0;
  std::int64_t left = 0;
  std::int64_t right = 0;

  Padding(std::int64_t all = 0) : top(all), bottom(all), left(all), right(all) {}  // NOLINT: implicit
  Padding(std::int64_t of_top, std::int64_t of_bottom, std::int64_t of_left, std::int64_t of_right)
      : top(of_top), bottom(of_bottom), left(of_left), right(of_right) {}
  std::vector<std::int64_t> list() const { return {top, bottom, left, right}; }
  bool any() const { return top != 0 || bottom != 0 || left != 0 || right != 0; }
};

struct Window {
  Size2d kernel = 1;
  Size2d stride = 1;
  Size2d dilation = 1;
  PadMode pad_mode = PadMode::same;
  Padding padding = 0;

  // Sizes of at least 1, padding of at least 0 and only with PadMode::pad.
  Result<> check(std::string_view owner) const;
  // [top, bottom, left, right] for images of this height and width.
  std::vector<std::int64_t> pads(std::int64_t height, std::int64_t width) const;
};

}  // namespace muster::nn
