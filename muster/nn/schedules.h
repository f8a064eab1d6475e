// Learning rates that change from step to step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/nn/cell.h"

namespace muster::nn {

// A cell that is called with the number of steps done (one int32) and gives the rate of the next, one
// floating number. An optimizer calls it in its graph.
class LearningRateSchedule : public Cell {
 public:
  explicit LearningRateSchedule(std::string class_name = "LearningRateSchedule")
      : Cell(std::move(class_name)) {}
};

// A schedule that is one formula of the step, computed in double.
class FormulaSchedule : public LearningRateSchedule {
 public:
  Values construct(std::span<const Value> inputs) override;

 protected:
  FormulaSchedule(std::string class_name, graph::Attributes attributes)
      : LearningRateSchedule(std::move(class_name)), attributes_(std::move(attributes)) {}

 private:
  graph::Attributes attributes_;
};

struct DecayOptions {
  double learning_rate = 0;  // of step 0; above 0
  double decay_rate = 0;     // above 0
  std::int64_t decay_steps = 1;
  bool is_stair = false;
};

// With q = step / decay_steps, with stairs its floor: learning_rate decay_rate^q.
class ExponentialDecayLR : public FormulaSchedule {
 public:
  explicit ExponentialDecayLR(DecayOptions options);
};

// learning_rate exp(-decay_rate step); with stairs, q decay_steps takes the place of the step.
class NaturalExpDecayLR : public FormulaSchedule {
 public:
  explicit NaturalExpDecayLR(DecayOptions options);
};

// learning_rate / (1 + decay_rate q).
class InverseDecayLR : public FormulaSchedule {
 public:
  explicit InverseDecayLR(DecayOptions options);
};

struct CosineDecayOptions {
  double min_lr = 0;
  double max_lr = 0;  // above min_lr
  std::int64_t decay_steps = 1;
};

// min_lr + (max_lr - min_lr) (1 + cos(pi min(step, decay_steps) / decay_steps)) / 2.
class CosineDecayLR : public FormulaSchedule {
 public:
  explicit CosineDecayLR(CosineDecayOptions options);
};

struct PolynomialDecayOptions {
  double learning_rate = 0;
  double end_learning_rate = 0;
  std::int64_t decay_steps = 1;
  double power = 1;
  bool update_decay_steps = false;
};

// (learning_rate - end_learning_rate) (1 - min(step, d) / d)^power + end_learning_rate, d = decay_steps; with
// update_decay_steps d grows to the next multiple of decay_steps that the step has not passed.
class PolynomialDecayLR : public FormulaSchedule {
 public:
  explicit PolynomialDecayLR(PolynomialDecayOptions options);
};

struct WarmUpOptions {
  double learning_rate = 0;
  std::int64_t warmup_steps = 1;
};

// learning_rate min(step, warmup_steps) / warmup_steps.
class WarmUpLR : public FormulaSchedule {
 public:
  explicit WarmUpLR(WarmUpOptions options);
};

// ---- The same by epochs, as lists with the rate of each step ----------------------------------------------
// The rate of a step is that of its epoch, floor(step / step_per_epoch). Each fails for settings that the
// schedules above refuse too.

using Rates = std::vector<double>;

struct EpochDecayOptions {
  double learning_rate = 0;
  double decay_rate = 0;
  std::int64_t total_step = 1;
  std::int64_t step_per_epoch = 1;
  std::int64_t decay_epoch = 1;
  bool is_stair = false;
};

Result<Rates> exponential_decay_lr(const EpochDecayOptions& options);
Result<Rates> natural_exp_decay_lr(const EpochDecayOptions& options);
Result<Rates> inverse_decay_lr(const EpochDecayOptions& options);

struct EpochCosineOptions {
  double min_lr = 0;
  double max_lr = 0;
  std::int64_t total_step = 1;
  std::int64_t step_per_epoch = 1;
  std::int64_t decay_epoch = 1;
};
Result<Rates> cosine_decay_lr(const EpochCosineOptions& options);

struct EpochPolynomialOptions {
  double learning_rate = 0;
  double end_learning_rate = 0;
  std::int64_t total_step = 1;
  std::int64_t step_per_epoch = 1;
  std::int64_t decay_epoch = 1;
  double power = 1;
  bool update_decay_epoch = false;
};
Result<Rates> polynomial_decay_lr(const EpochPolynomialOptions& options);

struct EpochWarmUpOptions {
  double learning_rate = 0;
  std::int64_t total_step = 1;
  std::int64_t step_per_epoch = 1;
  std::int64_t warmup_epoch = 1;
};
Result<Rates> warmup_lr(const EpochWarmUpOptions& options);

// learning_rates[i] for the steps from milestones[i - 1] (0 at first) up to, not including, milestones[i].
Result<Rates> piecewise_constant_lr(std::span<const std::int64_t> milestones,
                                    std::span<const double> learning_rates);

}  // namespace muster::nn
