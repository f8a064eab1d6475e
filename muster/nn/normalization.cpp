#include "muster/nn/normalization.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "muster/nn/arguments.h"
#include "muster/nn/cell_text.h"
#include "muster/nn/operators.h"
#include "muster/nn/ops.h"
#include "muster/nn/values.h"

namespace muster::nn {

BatchNorm::BatchNorm(std::string class_name, std::int64_t num_features, const BatchNormOptions& options,
                     std::vector<std::size_t> ranks)
    : Cell(std::move(class_name)),
      num_features_(num_features),
      eps_(options.eps),
      momentum_(options.momentum),
      use_batch_statistics_(options.use_batch_statistics),
      ranks_(std::move(ranks)) {
  require_count(this->class_name(), "num_features", num_features).value();
  require_not_negative(this->class_name(), "eps", eps_).value();
  if (!(momentum_ >= 0 && momentum_ <= 1))
    refuse_argument(this->class_name(), "momentum", "in [0, 1]", momentum_).value();
  make(moving_mean_, "moving_mean", options.moving_mean_init, 0, false);
  make(moving_variance_, "moving_variance", options.moving_var_init, 1, false);
  moving_mean_->mark_statistic();
  moving_variance_->mark_statistic();
  moving_mean_->rename(
      "mean");  // MindSpore's names; in another cell they are named by their place, as all are
  moving_variance_->rename("variance");
  make(gamma_, "gamma", options.gamma_init, 1, options.affine);
  make(beta_, "beta", options.beta_init, 0, options.affine);
}

void BatchNorm::make(ParameterPtr& member, const char* name, const std::optional<Initializer>& initializer,
                     double otherwise, bool trained) {
  member = std::make_shared<graph::Parameter>(name, graph::TensorType{DType::float32, {num_features_}},
                                              initializer ? *initializer : constant(otherwise), trained);
  keep_param(name, member);
}

Values BatchNorm::construct(std::span<const Value> inputs) {
  require_inputs(*this, inputs, 1, "one tensor");
  const Shape& shape = inputs[0].shape();
  if (std::find(ranks_.begin(), ranks_.end(), shape.rank()) == ranks_.end() || shape[1] != num_features_)
    throw Exception(
        Code::invalid_argument,
        fmt::format("{}: input {} does not fit: (N, {}{}) is needed", description(), muster::to_string(shape),
                    num_features_, ranks_.back() == 4 ? ", H, W" : ") or (N, C, L"));
  return graph::apply(
      "batch_norm", {inputs[0], gamma_, beta_, moving_mean_, moving_variance_},
      {{"eps", eps_}, {"momentum", momentum_}, {"training", use_batch_statistics_.value_or(training())}});
}

LayerNorm::LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options)
    : Cell("LayerNorm"),
      begin_norm_axis_(options.begin_norm_axis),
      begin_params_axis_(options.begin_params_axis),
      epsilon_(options.epsilon) {
  if (normalized_shape.rank() == 0)
    refuse_argument("LayerNorm", "normalized_shape", "of one axis at least", "()").value();
  require_positive("LayerNorm", "epsilon", epsilon_).value();
  const graph::TensorType type{DType::float32, normalized_shape};
  gamma_ =
      std::make_shared<graph::Parameter>("gamma", type, options.gamma_init ? *options.gamma_init : ones());
  beta_ = std::make_shared<graph::Parameter>("beta", type, options.beta_init ? *options.beta_init : zeros());
  keep_param("gamma", gamma_);
  keep_param("beta", beta_);
}

Values LayerNorm::construct(std::span<const Value> inputs) {
  require_inputs(*this, inputs, 1, "one tensor");
  const Value& x = inputs[0];
  const auto rank = static_cast<std::int64_t>(x.shape().rank());
  const auto counted = [rank](std::int64_t axis) { return axis < 0 ? axis + rank : axis; };
  const std::int64_t norm = counted(begin_norm_axis_), params = counted(begin_params_axis_);
  if (norm < 0 || norm >= rank || params < 0 || params >= rank)
    throw Exception(Code::invalid_argument,
                    fmt::format("{}: {} has no axes {} and {}", description(), muster::to_string(x.shape()),
                                begin_norm_axis_, begin_params_axis_));
  const std::vector<std::int64_t>& sizes = x.shape().sizes();
  if (gamma_->shape() != Shape(std::vector<std::int64_t>(sizes.begin() + params, sizes.end())))
    throw Exception(Code::invalid_argument,
                    fmt::format("{}: the last axes of {} are not {}", description(),
                                muster::to_string(x.shape()), muster::to_string(gamma_->shape())));
  const graph::Attributes attributes{{"begin_norm_axis", norm}, {"eps", epsilon_}};
  // As exact as x: float64 beside float64.
  const Value gamma = graph::floating_as(gamma_, computed_in(x.dtype()));
  const Value beta = graph::floating_as(beta_, computed_in(x.dtype()));
  if (norm == params) return graph::apply("layer_norm", {x, gamma, beta}, attributes);
  const Shape normalized(std::vector<std::int64_t>(sizes.begin() + norm, sizes.end()));
  const Value y = graph::apply(
      "layer_norm", {x, filled_like(gamma, normalized, 1), filled_like(gamma, normalized, 0)}, attributes);
  return graph::floating_as(ops::add(ops::mul(y, gamma), beta), x.dtype());
}

GroupNorm::GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const GroupNormOptions& options)
    : Cell("GroupNorm"), num_groups_(num_groups), num_channels_(num_channels), eps_(options.eps) {
  require_count("GroupNorm", "num_groups", num_groups).value();
  require_count("GroupNorm", "num_channels", num_channels).value();
  require_positive("GroupNorm", "eps", eps_).value();
  if (num_channels % num_groups != 0)
    throw Exception(
        Code::invalid_argument,
        fmt::format("GroupNorm: num_groups {} must divide num_channels {}", num_groups, num_channels));
  const graph::TensorType type{DType::float32, {num_channels}};
  gamma_ = std::make_shared<graph::Parameter>(
      "gamma", type, options.gamma_init ? *options.gamma_init : ones(), options.affine);
  beta_ = std::make_shared<graph::Parameter>("beta", type, options.beta_init ? *options.beta_init : zeros(),
                                             options.affine);
  keep_param("gamma", gamma_);
  keep_param("beta", beta_);
}

Values GroupNorm::construct(std::span<const Value> inputs) {
  const Value x = only_input(*this, inputs);
  const Shape& shape = x.shape();
  if (shape.rank() < 2 || shape[1] != num_channels_)
    throw Exception(Code::invalid_argument,
                    fmt::format("{}: input {} does not fit: (N, {}, ...) is needed", description(),
                                muster::to_string(shape), num_channels_));
  const DType exact = computed_in(x.dtype());
  const Shape row{shape.elements() / std::max<std::int64_t>(shape[0] * num_groups_, 1)};
  const Value gamma = graph::floating_as(gamma_, exact), beta = graph::floating_as(beta_, exact);
  const Value parts = ops::reshape(x, {shape[0] * num_groups_, row[0]});
  const Value normal =
      graph::apply("layer_norm", {parts, filled_like(gamma, row, 1), filled_like(gamma, row, 0)},
                   {{"begin_norm_axis", std::int64_t{1}}, {"eps", eps_}});
  std::vector<std::int64_t> spread(shape.rank(), 1);
  spread[1] = num_channels_;
  const Value y =
      ops::reshape(normal, shape) * ops::reshape(gamma, Shape(spread)) + ops::reshape(beta, Shape(spread));
  return {graph::floating_as(y, x.dtype())};
}

RMSNorm::RMSNorm(const Shape& normalized_shape, const RMSNormOptions& options)
    : Cell("RMSNorm"), epsilon_(options.epsilon) {
  if (normalized_shape.rank() == 0)
    refuse_argument("RMSNorm", "normalized_shape", "of one axis at least", "()").value();
  require_positive("RMSNorm", "epsilon", epsilon_).value();
  gamma_ = std::make_shared<graph::Parameter>("gamma", graph::TensorType{DType::float32, normalized_shape},
                                              options.gamma_init ? *options.gamma_init : ones());
  keep_param("gamma", gamma_);
}

Values RMSNorm::construct(std::span<const Value> inputs) {
  const Value x = only_input(*this, inputs);
  const std::vector<std::int64_t>& sizes = x.shape().sizes();
  const std::vector<std::int64_t>& wanted = gamma_->shape().sizes();
  if (sizes.size() < wanted.size() || !std::equal(wanted.rbegin(), wanted.rend(), sizes.rbegin()))
    throw Exception(Code::invalid_argument,
                    fmt::format("{}: the last axes of {} are not {}", description(),
                                muster::to_string(x.shape()), muster::to_string(gamma_->shape())));
  return {ops::rms_norm(x, graph::floating_as(gamma_, computed_in(x.dtype())), epsilon_)[0]};
}

std::string GroupNorm::settings() const {
  return CellText().add(num_groups_).add(num_channels_).add("eps", eps_).take();
}

std::string RMSNorm::settings() const {
  return CellText().add(gamma_->shape()).add("epsilon", epsilon_).take();
}

std::string BatchNorm::settings() const {
  return CellText().add(num_features_).add("eps", eps_).add("momentum", momentum_).take();
}

std::string LayerNorm::settings() const {
  return CellText()
      .add(gamma_->shape())
      .add_unless("begin_norm_axis", begin_norm_axis_, -1)
      .add_unless("begin_params_axis", begin_params_axis_, -1)
      .add("epsilon", epsilon_)
      .take();
}

}  // namespace muster::nn
