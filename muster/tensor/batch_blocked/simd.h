// Private to batch_blocked: the loops over vectors, compiled once for each instruction set. They work on
// pixels of 16 samples side by side: 16 floats.
#pragma once

#include <cstdint>

#include "muster/tensor/cpu.h"
#include "muster/tensor/kernels/pool2d.h"

namespace muster::batch_blocked {

// Some sums of a convolution: those of a few output channels ("outs") at a few pixels of one row
// ("columns"), over all input channels and a rectangle of taps. Steps count floats.
struct ConvTile {
  const float* x = nullptr;  // the pixel that the first column's first tap meets, in the first channel
  std::int64_t x_channel = 0;
  std::int64_t x_tap_row = 0;
  std::int64_t x_tap_column = 0;
  std::int64_t x_column = 0;
  const float* weight = nullptr;  // one float for each of `outs`; taps of a row follow each other
  std::int64_t weight_channel = 0;
  std::int64_t weight_tap_row = 0;
  std::int64_t channels = 0;
  std::int64_t tap_rows = 0;
  std::int64_t tap_columns = 0;
  const float* start = nullptr;  // what the sums start from, 16 floats for each of `outs`; null: zeros
  bool relu = false;             // y = max(y, 0)
  float* y = nullptr;
  std::int64_t y_channel = 0;
  std::int64_t y_column = 0;
};

// What some rows of the image add to the weight's gradient for a few output channels ("outs"), one input
// channel and a few taps of one row of the kernel ("taps"). Steps count floats.
struct WeightTile {
  const float* x = nullptr;  // the row that the first row of dy meets
  std::int64_t x_row = 0;    // from what one row of dy meets to what the next does
  std::int64_t x_columns = 0;
  const float* dy = nullptr;
  std::int64_t dy_row = 0;
  std::int64_t dy_channel = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  // Column j of dy meets column first + j * stride + k * dilation of x in tap k.
  std::int64_t first = 0;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  // The columns of dy for which all taps lie in the image.
  std::int64_t inside_begin = 0;
  std::int64_t inside_end = 0;
  float* sums = nullptr;  // 16 floats for each tap of each of `outs`: added to
  std::int64_t sums_out = 0;
};

// Batch normalisation of one plane, of which `valid` samples are no padding.
struct NormPlane {
  const float* x = nullptr;
  std::int64_t pixels = 0;
  std::int64_t valid = 0;
  float mean = 0;
  float scale = 0;
  float beta = 0;
  float* y = nullptr;            // (x - mean) scale + beta
  std::uint8_t* mask = nullptr;  // null, or whether y > 0; then y = max(y, 0)
};

// And backwards.
struct NormGradPlane {
  const float* x = nullptr;
  const float* dy = nullptr;
  const std::uint8_t* mask = nullptr;  // null, or where dy counts
  std::int64_t pixels = 0;
  std::int64_t valid = 0;
  float mean = 0;
  float scale = 0;
  float constant = 0;
  float slope = 0;
  float* dx = nullptr;  // scale (dy - constant - slope (x - mean))
};
struct NormSums {
  float dy = 0;
  float product = 0;  // of dy and x - mean
};

struct Simd {
  // Tiles of 1 to outs_max outs by 1 to columns_max columns: entry (outs - 1) * columns_max + columns - 1.
  int conv_outs_max = 0;
  int conv_columns_max = 0;
  void (*const* conv_tiles)(const ConvTile&) = nullptr;
  // Likewise by outs and taps, of which there may be weight_sums_max sums in all.
  int weight_outs_max = 0;
  int weight_taps_max = 0;
  int weight_sums_max = 0;
  void (*const* weight_tiles)(const WeightTile&) = nullptr;
  // out[i] = the sum of the 16 floats from sums + 16 i on.
  void (*totals)(const float* sums, std::int64_t count, float* out) = nullptr;

  // The sum of all floats of `pixels` pixels.
  float (*plane_sum)(const float* x, std::int64_t pixels) = nullptr;

  // The sum of (x - mean)^2 over the samples that are no padding.
  float (*plane_squares)(const float* x, std::int64_t pixels, std::int64_t valid, float mean) = nullptr;
  void (*norm)(const NormPlane& plane) = nullptr;
  NormSums (*norm_sums)(const NormGradPlane& plane) = nullptr;
  void (*norm_grad)(const NormGradPlane& plane) = nullptr;

  // The pooling of one plane; batch and channels of the size do not count.
  void (*max_pool)(const kernels::Pool2dSize& size, const float* x, float* y,
                   std::uint8_t* positions) = nullptr;
  void (*max_pool_grad)(const kernels::Pool2dSize& size, const float* dy, const std::uint8_t* positions,
                        float* dx) = nullptr;
  void (*avg_pool)(const kernels::Pool2dSize& size, const float* x, float* y) = nullptr;
  void (*avg_pool_grad)(const kernels::Pool2dSize& size, const float* dy, float* dx) = nullptr;

  // to[16 i + s] = from[s * sample + i] for the `valid` samples s, 0 for the others up to 16; i < count.
  void (*gather)(const float* from, std::int64_t sample, std::int64_t valid, std::int64_t count,
                 float* to) = nullptr;
  // The way back: to[s * sample + i] = from[16 i + s].
  void (*scatter)(const float* from, std::int64_t sample, std::int64_t valid, std::int64_t count,
                  float* to) = nullptr;
};

// For instructions that this processor has.
const Simd& simd_for(Isa isa);

}  // namespace muster::batch_blocked
