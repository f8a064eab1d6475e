// The ops of images (N, C, H, W) as functions of values.
#pragma once

#include <array>
#include <cstdint>

#include "muster/graph/graph.h"

namespace muster::nn::ops {

using graph::Value;

using Pair = std::array<std::int64_t, 2>;  // of height and width
using Pads = std::array<std::int64_t, 4>;  // pixels at the top, bottom, left and right

struct WindowOptions {
  Pair kernel{1, 1};
  Pair strides{1, 1};
  Pair dilations{1, 1};
};
// The pads with which windows over images (N, C, H, W) give ceil(H / stride) by ceil(W / stride) outputs; an
// odd pixel goes to the bottom and the right.
Pads same_pads(const Shape& x, const WindowOptions& window);

struct Conv2dOptions {
  Pair strides{1, 1};
  Pads pads{0, 0, 0, 0};
  Pair dilations{1, 1};
  std::int64_t group = 1;
};
// weight (O, C / group, kernel height, kernel width); `bias` (O,) or undefined.
Value conv2d(const Value& x, const Value& weight, const Value& bias = {}, const Conv2dOptions& options = {});

struct PoolOptions {
  Pair kernel{1, 1};
  Pair strides{1, 1};
  Pads pads{0, 0, 0, 0};
  bool ceil_mode = false;          // also windows that reach over the end
  bool count_include_pad = false;  // avg_pool2d: divide by the pixels of the padded image
};
Value max_pool2d(const Value& x, const PoolOptions& options);
Value avg_pool2d(const Value& x, const PoolOptions& options);
Value adaptive_avg_pool2d(const Value& x, Pair output_size);

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.9;  // of the moving statistics: moving = momentum moving + (1 - momentum) batch
  bool training = false;
};
struct MovingStatistics {
  Value mean, variance;  // (C,)
};
// x (N, C, ...), gamma and beta (C,). With training the batch's statistics are used, and the moving ones,
// which should be parameters, are written.
Value batch_norm(const Value& x, const Value& gamma, const Value& beta, const MovingStatistics& moving,
                 const BatchNormOptions& options = {});

}  // namespace muster::nn::ops
