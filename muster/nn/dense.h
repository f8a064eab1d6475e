// Dense: the layer in which all inputs meet all outputs.
#pragma once

#include <optional>
#include <span>

#include "muster/nn/cell.h"
#include "muster/nn/initializers.h"

namespace muster::nn {

struct DenseOptions {
  std::optional<Initializer> weight_init = {};  // default he_uniform(sqrt(5))
  std::optional<Initializer> bias_init = {};    // default uniform(1 / sqrt(in_channels))
  bool has_bias = true;
  CellPtr activation = {};
};

// y = activation(x weight^T + bias): (..., in_channels) to (..., out_channels). `weight` is (out, in).
class Dense : public Cell {
 public:
  Dense(std::int64_t in_channels, std::int64_t out_channels, DenseOptions options = {});
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

  const ParameterPtr& weight() const { return weight_; }
  const ParameterPtr& bias() const { return bias_; }  // null without bias

 private:
  std::int64_t in_channels_;
  std::int64_t out_channels_;
  ParameterPtr weight_;
  ParameterPtr bias_;
  CellPtr activation_;
};

}  // namespace muster::nn
