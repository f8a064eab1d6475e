#include "muster/nn/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "muster/nn/arguments.h"
#include "muster/nn/cell_text.h"
#include "muster/nn/operators.h"
#include "muster/nn/ops.h"
#include "muster/nn/values.h"

namespace muster::nn {
namespace {

Result<> check(std::string_view owner, std::int64_t in_channels, std::int64_t out_channels,
               std::int64_t group) {
  MUSTER_TRY_VOID(require_count(owner, "in_channels", in_channels));
  MUSTER_TRY_VOID(require_count(owner, "out_channels", out_channels));
  MUSTER_TRY_VOID(require_count(owner, "group", group));
  if (in_channels % group == 0 && out_channels % group == 0) return {};
  return fail(
      Code::invalid_argument,
      fmt::format("{}: group must divide in_channels and out_channels, but {} does not divide {} and {}",
                  owner, group, in_channels, out_channels));
}

ParameterPtr made(const char* name, const Shape& shape, const std::optional<Initializer>& given,
                  const Initializer& otherwise) {
  return std::make_shared<graph::Parameter>(name, graph::TensorType{DType::float32, shape},
                                            given ? *given : otherwise);
}

void require_images(const Cell& cell, const Shape& shape, std::int64_t channels, const Shape& weight) {
  if (shape.rank() != 4 || shape[1] != channels)
    throw Exception(
        Code::invalid_argument,
        fmt::format("{}: input {} does not fit: (N, {}, H, W) is needed for the weight {}",
                    cell.description(), muster::to_string(shape), channels, muster::to_string(weight)));
}

// What each element of an output is a sum of, for an initializer.
double fan_in(const Shape& weight) { return static_cast<double>(weight.elements() / weight[0]); }

// The size along one axis of the image whose convolution has `size` places.
std::int64_t transposed_size(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                             std::int64_t dilation, PadMode mode, std::int64_t padding, std::int64_t beyond) {
  const std::int64_t reach = (kernel - 1) * dilation + 1;
  if (mode == PadMode::pad) return (size - 1) * stride + reach - padding + beyond;
  return size * stride + (mode == PadMode::valid ? std::max<std::int64_t>(reach - stride, 0) : 0);
}

}  // namespace

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2d kernel_size, Conv2dOptions options)
    : Conv2d("Conv2d", in_channels, out_channels, kernel_size, options) {}

Conv2d::Conv2d(std::string class_name, std::int64_t in_channels, std::int64_t out_channels,
               Size2d kernel_size, const Conv2dOptions& options)
    : Cell(std::move(class_name)),
      in_channels_(in_channels),
      group_(options.group),
      window_{kernel_size, options.stride, options.dilation, options.pad_mode, options.padding} {
  check(this->class_name(), in_channels, out_channels, group_).value();
  window_.check(this->class_name()).value();
  const Shape shape{out_channels, in_channels / group_, kernel_size.height, kernel_size.width};
  weight_ = made("weight", shape, options.weight_init, he_uniform(std::sqrt(5.0)));
  keep_param("weight", weight_);
  if (!options.has_bias) return;
  bias_ = made("bias", {out_channels}, options.bias_init, uniform(1 / std::sqrt(fan_in(shape))));
  keep_param("bias", bias_);
}

Values Conv2d::construct(std::span<const Value> inputs) {
  require_inputs(*this, inputs, 1, "one tensor");
  const Shape& shape = inputs[0].shape();
  require_images(*this, shape, in_channels_, weight_->shape());
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

Conv1d::Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size,
               const Conv1dOptions& options)
    : Conv2d("Conv1d", in_channels, out_channels, {1, kernel_size},
             {.stride = {1, options.stride},
              .pad_mode = options.pad_mode,
              .padding = {0, 0, options.padding, options.padding},
              .dilation = {1, options.dilation},
              .group = options.group,
              .has_bias = options.has_bias,
              .weight_init = options.weight_init,
              .bias_init = options.bias_init}) {}

Values Conv1d::construct(std::span<const Value> inputs) {
  const Value x = only_input(*this, inputs);
  if (x.shape().rank() != 3 || x.shape()[1] != in_channels())
    throw Exception(Code::invalid_argument,
                    fmt::format("{}: input {} does not fit: (N, {}, L) is needed", description(),
                                muster::to_string(x.shape()), in_channels()));
  const Value rows = ops::expand_dims(x, 2);
  return {ops::squeeze(Conv2d::construct({&rows, 1}).at(0), ops::Sizes{2})};
}

Conv2dTranspose::Conv2dTranspose(std::int64_t in_channels, std::int64_t out_channels, Size2d kernel_size,
                                 const Conv2dTransposeOptions& options)
    : Cell("Conv2dTranspose"),
      in_channels_(in_channels),
      out_channels_(out_channels),
      group_(options.group),
      window_{kernel_size, options.stride, options.dilation, options.pad_mode, options.padding},
      output_padding_(options.output_padding) {
  check("Conv2dTranspose", in_channels, out_channels, group_).value();
  window_.check("Conv2dTranspose").value();
  check_output_padding();
  const Shape shape{in_channels, out_channels / group_, kernel_size.height, kernel_size.width};
  weight_ = made("weight", shape, options.weight_init, he_uniform(std::sqrt(5.0)));
  keep_param("weight", weight_);
  if (!options.has_bias) return;
  bias_ = made("bias", {out_channels}, options.bias_init, uniform(1 / std::sqrt(fan_in(shape))));
  keep_param("bias", bias_);
}

void Conv2dTranspose::check_output_padding() const {
  const auto fits = [](std::int64_t more, std::int64_t stride, std::int64_t dilation) {
    return more >= 0 && more < std::max(stride, dilation);
  };
  if (window_.pad_mode != PadMode::pad && output_padding_.height + output_padding_.width != 0)
    throw Exception(Code::invalid_argument, "Conv2dTranspose: output_padding needs pad_mode 'pad'");
  if (!fits(output_padding_.height, window_.stride.height, window_.dilation.height) ||
      !fits(output_padding_.width, window_.stride.width, window_.dilation.width))
    throw Exception(
        Code::invalid_argument,
        fmt::format("Conv2dTranspose: output_padding ({}, {}) must be at least 0 and below the stride or "
                    "the dilation",
                    output_padding_.height, output_padding_.width));
}

Values Conv2dTranspose::construct(std::span<const Value> inputs) {
  const Value x = only_input(*this, inputs);
  const Shape& shape = x.shape();
  require_images(*this, shape, in_channels_, weight_->shape());
  const std::int64_t height =
      transposed_size(shape[2], window_.kernel.height, window_.stride.height, window_.dilation.height,
                      window_.pad_mode, window_.padding.top + window_.padding.bottom, output_padding_.height);
  const std::int64_t width =
      transposed_size(shape[3], window_.kernel.width, window_.stride.width, window_.dilation.width,
                      window_.pad_mode, window_.padding.left + window_.padding.right, output_padding_.width);
  if (height < 1 || width < 1)
    throw Exception(Code::invalid_argument,
                    fmt::format("{}: of input {} the padding leaves an output of {} x {}", description(),
                                muster::to_string(shape), height, width));
  const Value y = graph::apply("conv2d_grad_input", {x, weight_},
                               {{"strides", window_.stride.list()},
                                {"pads", window_.pads(height, width)},
                                {"dilations", window_.dilation.list()},
                                {"group", group_},
                                {"input_size", std::vector<std::int64_t>{height, width}}});
  return {bias_ == nullptr ? y : y + ops::reshape(bias_, {1, out_channels_, 1, 1})};
}

std::string Conv2dTranspose::settings() const {
  return CellText()
      .add(in_channels_)
      .add(out_channels_)
      .add("kernel_size", window_.kernel)
      .add("stride", window_.stride)
      .add("pad_mode", window_.pad_mode)
      .add_unless("padding", window_.padding, 0)
      .add_unless("output_padding", output_padding_, 0)
      .add_unless("dilation", window_.dilation, 1)
      .add_unless("group", group_, 1)
      .add_unless("has_bias", bias_ != nullptr, false)
      .take();
}

}  // namespace muster::nn
