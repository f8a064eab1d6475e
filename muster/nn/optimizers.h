// Optimizers: the formulas by which parameters follow their gradients.
//
// All take parameters or groups of them, a learning rate that is a number, a list or a schedule, and a weight
// decay (optimizer.h). g is the gradient / loss_scale + weight_decay p, if not said otherwise; all state is
// zero at first, if not said otherwise.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/nn/optimizer.h"

namespace muster::nn {

struct SGDOptions {
  LearningRate learning_rate = 0.1;
  double momentum = 0.0;
  double dampening = 0.0;
  WeightDecay weight_decay = 0.0;  // a number
  bool nesterov = false;           // needs momentum, and no dampening
  double loss_scale = 1.0;
};

// With momentum: v = momentum v + (1 - dampening) g (v = g at the first step), g = nesterov ? g + momentum v
// : v; then p = p - learning_rate g.
class SGD : public Optimizer {
 public:
  SGD(const ParameterGroups& parameters, SGDOptions options = {});

 protected:
  void update(std::size_t index, const Update& update) override;

 private:
  SGDOptions options_;
  std::vector<ParameterPtr> accumulations_;
  std::vector<ParameterPtr> started_;
};

struct MomentumOptions {
  LearningRate learning_rate = 0.1;
  double momentum = 0.9;
  WeightDecay weight_decay = 0.0;
  double loss_scale = 1.0;
  bool use_nesterov = false;
};

// v = momentum v + g; p = p - learning_rate (use_nesterov ? g + momentum v : v).
class Momentum : public Optimizer {
 public:
  Momentum(const ParameterGroups& parameters, MomentumOptions options = {});

 protected:
  void update(std::size_t index, const Update& update) override;

 private:
  MomentumOptions options_;
  std::vector<ParameterPtr> moments_;
};

struct AdamOptions {
  LearningRate learning_rate = 1e-3;
  double beta1 = 0.9;    // in (0, 1)
  double beta2 = 0.999;  // in (0, 1)
  double eps = 1e-8;     // above 0
  bool use_nesterov = false;
  WeightDecay weight_decay = 0.0;
  double loss_scale = 1.0;
  bool use_amsgrad = false;
};

// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; p = p - learning_rate sqrt(1 - beta2^t) / (1 -
// beta1^t) u / (sqrt(v) + eps): t counts the steps from 1; u = m, with use_nesterov beta1 m + (1 - beta1) g;
// with use_amsgrad the greatest v so far takes the place of v.
class Adam : public Optimizer {
 public:
  Adam(const ParameterGroups& parameters, AdamOptions options = {});

 protected:
  void update(std::size_t index, const Update& update) override;

 private:
  AdamOptions options_;
  std::vector<ParameterPtr> means_;
  std::vector<ParameterPtr> squares_;
  std::vector<ParameterPtr> greatest_;
};

struct AdamWeightDecayOptions {
  LearningRate learning_rate = 1e-3;
  double beta1 = 0.9;    // in (0, 1)
  double beta2 = 0.999;  // in (0, 1)
  double eps = 1e-6;     // above 0
  WeightDecay weight_decay = 0.0;
};

// m and v as Adam's, g without decay; p = p - learning_rate (m / (sqrt(v) + eps) + weight_decay p).
class AdamWeightDecay : public Optimizer {
 public:
  AdamWeightDecay(const ParameterGroups& parameters, AdamWeightDecayOptions options = {});

 protected:
  void update(std::size_t index, const Update& update) override;
  bool decays_gradient() const override { return false; }

 private:
  AdamWeightDecayOptions options_;
  std::vector<ParameterPtr> means_;
  std::vector<ParameterPtr> squares_;
};

struct RMSPropOptions {
  LearningRate learning_rate = 0.1;
  double decay = 0.9;      // at least 0
  double momentum = 0.0;   // at least 0
  double epsilon = 1e-10;  // above 0
  bool centered = false;
  double loss_scale = 1.0;
  WeightDecay weight_decay = 0.0;
};

// s = decay s + (1 - decay) g^2 (s is 1 at first); centered: n = decay n + (1 - decay) g, else n = 0;
// v = momentum v + learning_rate g / sqrt(s - n^2 + epsilon); p = p - v.
class RMSProp : public Optimizer {
 public:
  RMSProp(const ParameterGroups& parameters, RMSPropOptions options = {});

 protected:
  void update(std::size_t index, const Update& update) override;

 private:
  RMSPropOptions options_;
  std::vector<ParameterPtr> means_;
  std::vector<ParameterPtr> squares_;
  std::vector<ParameterPtr> moments_;
};

struct AdagradOptions {
  double accum = 0.1;  // what s is at first, at least 0
  LearningRate learning_rate = 0.001;
  bool update_slots = true;
  double loss_scale = 1.0;
  WeightDecay weight_decay = 0.0;
};

// s = s + g^2 (if update_slots); p = p - learning_rate g / sqrt(s).
class Adagrad : public Optimizer {
 public:
  Adagrad(const ParameterGroups& parameters, AdagradOptions options = {});

 protected:
  void update(std::size_t index, const Update& update) override;

 private:
  AdagradOptions options_;
  std::vector<ParameterPtr> sums_;
};

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
