#include "muster/nn/dense.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "muster/nn/arguments.h"
#include "muster/nn/cell_text.h"
#include "muster/nn/ops.h"
#include "muster/nn/values.h"

namespace muster::nn {
Dense::Dense(std::int64_t in_channels, std::int64_t out_channels, DenseOptions options)
    : Cell("Dense"),
      in_channels_(in_channels),
      out_channels_(out_channels),
      activation_(std::move(options.activation)) {
  require_count("Dense", "in_channels", in_channels).value();
  require_count("Dense", "out_channels", out_channels).value();
  weight_ = std::make_shared<graph::Parameter>(
      "weight", graph::TensorType{DType::float32, {out_channels, in_channels}},
      options.weight_init ? *options.weight_init : he_uniform(std::sqrt(5.0)));
  keep_param("weight", weight_);
  if (options.has_bias) {
    const double bound = 1 / std::sqrt(static_cast<double>(in_channels));
    bias_ = std::make_shared<graph::Parameter>("bias", graph::TensorType{DType::float32, {out_channels}},
                                               options.bias_init ? *options.bias_init : uniform(bound));
    keep_param("bias", bias_);
  }
  if (activation_ != nullptr) insert_child("activation", activation_);
}

Values Dense::construct(std::span<const Value> inputs) {
  const Value x = only_input(*this, inputs);
  if (!x.defined()) return ops::relu(x);  // the error of an input without a value
  const Shape& shape = x.shape();
  if (shape.rank() == 0 || shape.sizes().back() != in_channels_)
    throw Exception(Code::invalid_argument,
                    fmt::format("{}: input {} has {} features but the weight {} takes {}", description(),
                                muster::to_string(shape), shape.rank() == 0 ? 1 : shape.sizes().back(),
                                muster::to_string(weight_->shape()), in_channels_));
  const bool matrix = shape.rank() == 2;
  const std::int64_t rows = shape.elements() / std::max<std::int64_t>(in_channels_, 1);
  Value y = ops::matmul(matrix ? x : ops::reshape(x, {rows, in_channels_}), weight_, false, true);
  if (bias_ != nullptr) y = ops::bias_add(y, bias_);
  if (activation_ != nullptr) y = activation_->call({&y, 1}).at(0);
  if (matrix) return y;
  std::vector<std::int64_t> sizes = shape.sizes();
  sizes.back() = out_channels_;
  return ops::reshape(y, Shape(std::move(sizes)));
}

std::string Dense::settings() const {
  return CellText()
      .add(in_channels_)
      .add(out_channels_)
      .add_unless("has_bias", bias_ != nullptr, true)
      .take();
}

}  // namespace muster::nn
