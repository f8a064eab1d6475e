// Row rule: an optimizer's update of single rows, by the kernels that update dense parameters, so that a row
// that is updated at every step has the bits of a dense one.
//
// Rows without a gradient are neither read nor written, whatever the optimizer. For SGD, Adagrad and FTRL
// that is what a gradient of zeros does (FTRL but for the first: a dense row without gradient becomes 0 at
// step 0, a row here keeps its first value). It differs from dense where zeros would move a row: by weight
// decay, by the accumulation of Momentum, by the mean of Adam. Adam's correction counts the steps of the job,
// as LazyAdam's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "muster/server/table_spec.h"

namespace muster::server {

inline constexpr std::size_t states_max = 3;

// Rows side by side: values, states and gradients of `count` numbers each.
struct RowBlock {
  float* values = nullptr;
  std::array<float*, states_max> states = {};
  const float* gradients = nullptr;
  std::int64_t count = 0;
};

// What all rows of a step share.
struct UpdateStep {
  float learning_rate = 0;
  std::uint64_t steps = 0;          // that the optimizer has done before this one
  std::uint64_t job_steps = steps;  // likewise all optimizers together, by which a row's age counts
};

class RowRule {
 public:
  explicit RowRule(const RuleSettings& settings) : settings_(settings) {}
  // Floats that the rule keeps for each value.
  std::size_t states() const;
  float initial_state(std::size_t state) const;
  void update(const RowBlock& block, const UpdateStep& step) const;

 private:
  RuleSettings settings_;
};

}  // namespace muster::server
