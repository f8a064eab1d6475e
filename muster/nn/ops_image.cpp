#include "muster/nn/ops_image.h"

#include <algorithm>
#include <vector>

namespace muster::nn::ops {
namespace {

template <std::size_t count>
std::vector<std::int64_t> list(const std::array<std::int64_t, count>& numbers) {
  return {numbers.begin(), numbers.end()};
}

graph::Attributes attributes_of(const PoolOptions& options) {
  return {{"kernel", list(options.kernel)},
          {"strides", list(options.strides)},
          {"pads", list(options.pads)},
          {"ceil_mode", options.ceil_mode}};
}

}  // namespace

Pads same_pads(const Shape& x, const WindowOptions& window) {
  Pads pads{};
  if (x.rank() != 4) return pads;  // the op says what is wrong
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t stride = std::max<std::int64_t>(window.strides[axis], 1);
    const std::int64_t outputs = (x[2 + axis] + stride - 1) / stride;
    const std::int64_t reach = (window.kernel[axis] - 1) * window.dilations[axis] + 1;
    const std::int64_t total = std::max<std::int64_t>((outputs - 1) * stride + reach - x[2 + axis], 0);
    pads[2 * axis] = total / 2;
    pads[2 * axis + 1] = total - total / 2;
  }
  return pads;
}

Value conv2d(const Value& x, const Value& weight, const Value& bias, const Conv2dOptions& options) {
  std::vector<Value> inputs{x, weight};
  if (bias.defined()) inputs.push_back(bias);
  return graph::apply("conv2d", inputs,
                      {{"strides", list(options.strides)},
                       {"pads", list(options.pads)},
                       {"dilations", list(options.dilations)},
                       {"group", options.group}});
}

Value max_pool2d(const Value& x, const PoolOptions& options) {
  return graph::apply("max_pool2d", {x}, attributes_of(options));
}

Value avg_pool2d(const Value& x, const PoolOptions& options) {
  graph::Attributes attributes = attributes_of(options);
  attributes.set("count_include_pad", options.count_include_pad);
  return graph::apply("avg_pool2d", {x}, attributes);
}

Value adaptive_avg_pool2d(const Value& x, Pair output_size) {
  return graph::apply("adaptive_avg_pool2d", {x}, {{"output_size", list(output_size)}});
}

Value batch_norm(const Value& x, const Value& gamma, const Value& beta, const MovingStatistics& moving,
                 const BatchNormOptions& options) {
  return graph::apply("batch_norm", {x, gamma, beta, moving.mean, moving.variance},
                      {{"eps", options.eps}, {"momentum", options.momentum}, {"training", options.training}});
}

}  // namespace muster::nn::ops
