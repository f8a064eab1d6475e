#include "muster/nn/conv.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "muster/nn/arguments.h"
#include "muster/nn/cell_text.h"
#include "muster/nn/values.h"

namespace muster::nn {
namespace {

Result<> check(std::int64_t in_channels, std::int64_t out_channels, std::int64_t group) {
  MUSTER_TRY_VOID(require_count("Conv2d", "in_channels", in_channels));
  MUSTER_TRY_VOID(require_count("Conv2d", "out_channels", out_channels));
  MUSTER_TRY_VOID(require_count("Conv2d", "group", group));
  if (in_channels % group == 0 && out_channels % group == 0) return {};
  return fail(
      Code::invalid_argument,
      fmt::format("Conv2d: group must divide in_channels and out_channels, but {} does not divide {} and {}",
                  group, in_channels, out_channels));
}

}  // namespace

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2d kernel_size, Conv2dOptions options)
    : Cell("Conv2d"),
      in_channels_(in_channels),
      group_(options.group),
      window_{kernel_size, options.stride, options.dilation, options.pad_mode, options.padding} {
  check(in_channels, out_channels, group_).value();
  window_.check("Conv2d").value();
  const Shape shape{out_channels, in_channels / group_, kernel_size.height, kernel_size.width};
  weight_ = std::make_shared<graph::Parameter>(
      "weight", graph::TensorType{DType::float32, shape},
      options.weight_init ? *options.weight_init : he_uniform(std::sqrt(5.0)));
  keep_param("weight", weight_);
  if (!options.has_bias) return;
  const double fan_in = static_cast<double>(shape.elements() / out_channels);
  bias_ = std::make_shared<graph::Parameter>(
      "bias", graph::TensorType{DType::float32, {out_channels}},
      options.bias_init ? *options.bias_init : uniform(1 / std::sqrt(fan_in)));
  keep_param("bias", bias_);
}

Values Conv2d::construct(std::span<const Value> inputs) {
  require_inputs(*this, inputs, 1, "one tensor");
  const Shape& shape = inputs[0].shape();
  if (shape.rank() != 4 || shape[1] != in_channels_)
    throw Exception(
        Code::invalid_argument,
        fmt::format("{}: input {} does not fit: (N, {}, H, W) is needed for the weight {}", description(),
                    muster::to_string(shape), in_channels_, muster::to_string(weight_->shape())));
  std::vector<Value> given{inputs[0], weight_};
  if (bias_ != nullptr) given.emplace_back(bias_);
  return graph::apply("conv2d", given,
                      {{"strides", window_.stride.list()},
                       {"pads", window_.pads(shape[2], shape[3])},
                       {"dilations", window_.dilation.list()},
                       {"group", group_}});
}

std::string Conv2d::settings() const {
  return CellText()
      .add(in_channels_)
      .add(weight_->shape()[0])
      .add("kernel_size", window_.kernel)
      .add("stride", window_.stride)
      .add("pad_mode", window_.pad_mode)
      .add_unless("padding", window_.padding, 0)
      .add_unless("dilation", window_.dilation, 1)
      .add_unless("group", group_, 1)
      .add_unless("has_bias", bias_ != nullptr, false)
      .take();
}

}  // namespace muster::nn
