// Convolutions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

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

 private:
  std::int64_t in_channels_;
  std::int64_t group_;
  Window window_;
  ParameterPtr weight_;
  ParameterPtr bias_;
};

}  // namespace muster::nn
