// Convolutions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "muster/nn/cell.h"
#include "muster/nn/initializers.h"
#include "muster/nn/windows.h"

namespace muster::nn {

struct Conv2dOptions {
  Size2d stride = 1;
  PadMode pad_mode = PadMode::same;
  Padding padding = 0;
  Size2d dilation = 1;
  std::int64_t group = 1;  // divides both numbers of channels
  bool has_bias = false;
  std::optional<Initializer> weight_init = {};  // default he_uniform(sqrt(5))
  std::optional<Initializer> bias_init = {};    // default uniform(1 / sqrt(fan_in))
};

// (N, in_channels, H, W) to (N, out_channels, H', W'): the sum over channels and kernel of x weight (the
// kernel is not turned round), plus bias. `weight` is (out_channels, in_channels / group, kernel...), `bias`
// (out_channels,).
class Conv2d : public Cell {
 public:
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2d kernel_size, Conv2dOptions options = {});
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

  const ParameterPtr& weight() const { return weight_; }
  const ParameterPtr& bias() const { return bias_; }  // null without bias

 protected:
  Conv2d(std::string class_name, std::int64_t in_channels, std::int64_t out_channels, Size2d kernel_size,
         const Conv2dOptions& options);
  std::int64_t in_channels() const { return in_channels_; }

 private:
  std::int64_t in_channels_;
  std::int64_t group_;
  Window window_;
  ParameterPtr weight_;
  ParameterPtr bias_;
};

struct Conv1dOptions {
  std::int64_t stride = 1;
  PadMode pad_mode = PadMode::same;
  std::int64_t padding = 0;  // at both ends, with PadMode::pad
  std::int64_t dilation = 1;
  std::int64_t group = 1;
  bool has_bias = false;
  std::optional<Initializer> weight_init = {};  // as of Conv2d
  std::optional<Initializer> bias_init = {};
};

// Conv2d along one axis: (N, in_channels, L) to (N, out_channels, L'). `weight` is (out_channels, in_channels
// / group, 1, kernel).
class Conv1d : public Conv2d {
 public:
  Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size,
         const Conv1dOptions& options = {});
  Values construct(std::span<const Value> inputs) override;
};

struct Conv2dTransposeOptions {
  Size2d stride = 1;
  PadMode pad_mode = PadMode::same;
  Padding padding = 0;
  Size2d output_padding = 0;  // rows and columns more, with PadMode::pad; below the stride or the dilation
  Size2d dilation = 1;
  std::int64_t group = 1;
  bool has_bias = false;
  std::optional<Initializer> weight_init = {};  // default he_uniform(sqrt(5))
  std::optional<Initializer> bias_init =
      {};  // default uniform(1 / sqrt(out_channels / group kernel elements))
};

// The gradient of Conv2d for its images, plus bias: (N, in_channels, H, W) to (N, out_channels, H', W') with
// H' = H stride (same), with windows as they are (valid), or (H - 1) stride + (kernel - 1) dilation + 1 -
// padding + output_padding (pad). `weight` is (in_channels, out_channels / group, kernel...). Zeiler et al.,
// Deconvolutional networks, CVPR 2010.
class Conv2dTranspose : public Cell {
 public:
  Conv2dTranspose(std::int64_t in_channels, std::int64_t out_channels, Size2d kernel_size,
                  const Conv2dTransposeOptions& options = {});
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

 private:
  void check_output_padding() const;

  std::int64_t in_channels_;
  std::int64_t out_channels_;
  std::int64_t group_;
  Window window_;
  Size2d output_padding_;
  ParameterPtr weight_;
  ParameterPtr bias_;
};

}  // namespace muster::nn
