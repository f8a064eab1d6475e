// Cells that bring values to mean 0 and variance 1.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/nn/cell.h"
#include "muster/nn/initializers.h"

namespace muster::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.9;                             // of the moving statistics, in [0, 1]
  bool affine = true;                                // whether gamma and beta are trained
  std::optional<Initializer> gamma_init = {};        // default ones
  std::optional<Initializer> beta_init = {};         // default zeros
  std::optional<Initializer> moving_mean_init = {};  // default zeros
  std::optional<Initializer> moving_var_init = {};   // default ones
  // Whether the batch's own statistics are used; absent: while the cell trains.
  std::optional<bool> use_batch_statistics = {};
};

// y = (x - mean) / sqrt(variance + eps) gamma + beta for each channel (axis 1). In training mean and variance
// are those of the batch, and moving = momentum moving + (1 - momentum) batch; else they are the moving ones.
// Parameters, all (C,): `moving_mean`, `moving_variance`, which get no gradient and have the names `mean` and
// `variance` while the cell stands alone, `gamma`, `beta`. Ioffe and Szegedy, ICML 2015.
class BatchNorm : public Cell {
 public:
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

  const ParameterPtr& moving_mean() const { return moving_mean_; }
  const ParameterPtr& moving_variance() const { return moving_variance_; }
  const ParameterPtr& gamma() const { return gamma_; }
  const ParameterPtr& beta() const { return beta_; }

 protected:
  BatchNorm(std::string class_name, std::int64_t num_features, const BatchNormOptions& options,
            std::vector<std::size_t> ranks);

 private:
  void make(ParameterPtr& member, const char* name, const std::optional<Initializer>& initializer,
            double otherwise, bool trained);

  std::int64_t num_features_;
  double eps_;
  double momentum_;
  std::optional<bool> use_batch_statistics_;
  std::vector<std::size_t> ranks_;  // that inputs may have
  ParameterPtr moving_mean_, moving_variance_, gamma_, beta_;
};

// Of (N, C) or (N, C, L).
class BatchNorm1d : public BatchNorm {
 public:
  explicit BatchNorm1d(std::int64_t num_features, const BatchNormOptions& options = {})
      : BatchNorm("BatchNorm1d", num_features, options, {2, 3}) {}
};

// Of (N, C, H, W).
class BatchNorm2d : public BatchNorm {
 public:
  explicit BatchNorm2d(std::int64_t num_features, const BatchNormOptions& options = {})
      : BatchNorm("BatchNorm2d", num_features, options, {4}) {}
};

struct LayerNormOptions {
  std::int64_t begin_norm_axis = -1;
  std::int64_t begin_params_axis = -1;
  std::optional<Initializer> gamma_init = {};  // default ones
  std::optional<Initializer> beta_init = {};   // default zeros
  double epsilon = 1e-7;
};

// y = (x - mean) / sqrt(variance + epsilon) gamma + beta, mean and variance over the axes from
// begin_norm_axis on. `gamma` and `beta` have the shape of the axes from begin_params_axis on. Ba et al.,
// 2016 (arXiv 1607.06450).
class LayerNorm : public Cell {
 public:
  explicit LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options = {});
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

 private:
  std::int64_t begin_norm_axis_;
  std::int64_t begin_params_axis_;
  double epsilon_;
  ParameterPtr gamma_, beta_;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;                          // whether gamma and beta are trained
  std::optional<Initializer> gamma_init = {};  // default ones
  std::optional<Initializer> beta_init = {};   // default zeros
};

// y = (x - mean) / sqrt(variance + eps) gamma + beta, mean and variance over each of num_groups equal groups
// of the channels of each sample. x (N, num_channels, ...), `gamma` and `beta` (num_channels,). With as many
// groups as channels it is instance normalization. Wu and He, Group normalization, ECCV 2018.
class GroupNorm : public Cell {
 public:
  GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const GroupNormOptions& options = {});
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

 private:
  std::int64_t num_groups_;
  std::int64_t num_channels_;
  double eps_;
  ParameterPtr gamma_, beta_;
};

struct RMSNormOptions {
  double epsilon = 1e-6;
  std::optional<Initializer> gamma_init = {};  // default ones
};

// y = x / sqrt(mean(x^2) + epsilon) gamma, the mean over the last axes, which have the shape
// normalized_shape, that of `gamma`. Zhang and Sennrich, Root mean square layer normalization, NeurIPS 2019.
class RMSNorm : public Cell {
 public:
  explicit RMSNorm(const Shape& normalized_shape, const RMSNormOptions& options = {});
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

 private:
  double epsilon_;
  ParameterPtr gamma_;
};

}  // namespace muster::nn
