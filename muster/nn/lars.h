// LARS: another optimizer, with a rate for each layer. The other optimizers are made from their rows.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "muster/nn/optimizer.h"

namespace muster::nn {

struct LARSOptions {
  double epsilon = 1e-5;       // above 0
  double coefficient = 0.001;  // above 0
  bool use_clip = false;
  // Which parameters get it; null: those without "LayerNorm" and "bias" in their names.
  std::function<bool(const graph::Parameter&)> lars_filter = {};
};

// Another optimizer whose gradients become r (g + weight_decay p) with r = coefficient |p| / (|g| +
// weight_decay |p| + epsilon), at most learning_rate with use_clip after r = r / learning_rate is cut at 1.
// Parameters that the filter leaves out keep g, without decay.
class LARS : public Optimizer {
 public:
  LARS(std::shared_ptr<Optimizer> optimizer, LARSOptions options = {});
  Values construct(std::span<const Value> gradients) override;
  const std::shared_ptr<Optimizer>& optimizer() const { return optimizer_; }

 private:
  std::shared_ptr<Optimizer> optimizer_;
  LARSOptions options_;
  std::vector<bool> scales_;  // by updated parameter
};

}  // namespace muster::nn
