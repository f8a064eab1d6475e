// Private: the pixels of an image of another size, as OpenCV defines the four interpolations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/data/transform.h"
#include "muster/data/vision.h"

namespace muster::data {

// Part of an image in memory, channels last.
template <class Value>
struct ImageView {
  const Value* values = nullptr;
  Size size;
  std::int64_t channels = 1;
  std::int64_t row_values = 0;  // from one line to the next, in values

  const Value* line(std::int64_t y) const { return values + y * row_values; }
};

// Writes the image at `size`: (H, W, C), or (C, H, W) for Channels::first. Whole numbers are rounded to the
// nearest.
void resample(const ImageView<std::uint8_t>& image, Size size, Interpolation interpolation, Channels layout,
              std::uint8_t* out);
void resample(const ImageView<float>& image, Size size, Interpolation interpolation, Channels layout,
              float* out);
void resample(const ImageView<double>& image, Size size, Interpolation interpolation, Channels layout,
              double* out);
void resample(const ImageView<std::int16_t>& image, Size size, Interpolation interpolation, Channels layout,
              std::int16_t* out);
void resample(const ImageView<std::uint16_t>& image, Size size, Interpolation interpolation, Channels layout,
              std::uint16_t* out);

}  // namespace muster::data
