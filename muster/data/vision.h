// Operations on the geometry of images (H, W, C) or (H, W), for `map`. Random numbers depend on the seed, the
// epoch, the sample and the operation's place in the pipeline, and on nothing else.
#pragma once

#include <array>
#include <cstdint>

#include "muster/data/operation.h"

namespace muster::data {

struct Size {
  std::int64_t height = 0;
  std::int64_t width = 0;
};

// Pixels to add at each side.
struct Padding {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t right = 0;
  std::int64_t bottom = 0;
};

// What lies outside of an image: the fill colour; the nearest pixel; the image mirrored, its edge not
// repeated (reflect) or repeated (symmetric).
enum class Border { constant, edge, reflect, symmetric };

struct BorderOptions {
  Border mode = Border::constant;
  std::array<std::uint8_t, 3> fill = {0, 0, 0};  // by channel; further channels take the last
};

// How pixels are made where there were none. As OpenCV does it, within one grey level.
enum class Interpolation { nearest, linear, cubic, area };

// The bytes of a JPEG or PNG file, uint8 (n,), as an image (H, W, 3) of red, green and blue.
OperationPtr decode();

OperationPtr pad(Padding padding, BorderOptions border = {});
// The middle of the image; where it is smaller than `size`, black is around it.
OperationPtr center_crop(Size size);

struct RandomCropOptions {
  Size size;
  Padding padding = {};        // added first
  bool pad_if_needed = false;  // an image that is too small is padded on both sides; else it is an error
  BorderOptions border = {};
};
// A part of the image of that size, from anywhere in it: each place is as likely.
OperationPtr random_crop(RandomCropOptions options);

OperationPtr random_horizontal_flip(double probability = 0.5);
OperationPtr random_vertical_flip(double probability = 0.5);

// To `size`; uint8 images stay uint8 (rounded), float32 ones float32.
OperationPtr resize(Size size, Interpolation interpolation = Interpolation::linear);
// The shorter side to `side`, the longer one in proportion (rounded down).
OperationPtr resize_shorter(std::int64_t side, Interpolation interpolation = Interpolation::linear);

struct RandomResizedCropOptions {
  Size size;
  std::array<double, 2> scale = {0.08, 1.0};             // least and most of the area
  std::array<double, 2> ratio = {3.0 / 4.0, 4.0 / 3.0};  // least and most width over height
  Interpolation interpolation = Interpolation::linear;
  std::int64_t max_attempts = 10;  // then the middle of the image
};
// A part of random area and shape, resized to `size`.
OperationPtr random_resized_crop(RandomResizedCropOptions options);

}  // namespace muster::data
