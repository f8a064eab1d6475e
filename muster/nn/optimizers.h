// How parameters follow their gradients.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/nn/cell.h"

namespace muster::nn {

// A cell that is called with the gradients, one for each of `updated_parameters()`, in order, and updates all
// of them in place by one cached plan. Its state is Parameters of its own ("moments.fc.weight"), zero at
// first. The learning rate is a parameter too, so that setting it needs no new trace.
class Optimizer : public Cell {
 public:
  const std::vector<ParameterPtr>& updated_parameters() const { return updated_; }
  const ParameterPtr& learning_rate() const { return learning_rate_; }
  void set_learning_rate(double learning_rate);

 protected:
  Optimizer(std::string class_name, std::vector<ParameterPtr> parameters, double learning_rate);
  // A parameter like each updated one, named "<prefix>.<name>".
  std::vector<ParameterPtr> make_state(std::string_view prefix, double initial_value, bool scalar = false);
  // The failed value to return when `gradients` do not fit, undefined when they do.
  Value problem(std::span<const Value> gradients) const;

 private:
  std::vector<ParameterPtr> updated_;
  ParameterPtr learning_rate_;
};

struct SGDOptions {
  double learning_rate = 0.1;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  double loss_scale = 1.0;
};

// g = gradient / loss_scale + weight_decay p; with momentum: v = momentum v + (1 - dampening) g (v = g at the
// first step), g = nesterov ? g + momentum v : v; then p = p - learning_rate g.
class SGD : public Optimizer {
 public:
  SGD(std::vector<ParameterPtr> parameters, SGDOptions options = {});
  Values construct(std::span<const Value> gradients) override;

 private:
  SGDOptions options_;
  std::vector<ParameterPtr> accumulations_;
  std::vector<ParameterPtr> started_;
};

struct MomentumOptions {
  double learning_rate = 0.1;
  double momentum = 0.9;
  double weight_decay = 0.0;
  double loss_scale = 1.0;
  bool use_nesterov = false;
};

// g = gradient / loss_scale + weight_decay p (no decay for names with "beta" or "gamma"); v = momentum v + g;
// p = p - learning_rate (use_nesterov ? g + momentum v : v).
class Momentum : public Optimizer {
 public:
  Momentum(std::vector<ParameterPtr> parameters, MomentumOptions options = {});
  Values construct(std::span<const Value> gradients) override;

 private:
  MomentumOptions options_;
  std::vector<ParameterPtr> moments_;
};

}  // namespace muster::nn
