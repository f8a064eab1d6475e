#include "muster/server/row_rule.h"

#include "muster/tensor/kernels.h"

namespace muster::server {
namespace {

kernels::UpdateScale scale_of(const RuleSettings& settings) {
  return {.gradient_scale = 1 / settings.loss_scale, .weight_decay = settings.weight_decay};
}

kernels::UpdateArguments<float> arguments_of(const RowBlock& block, const UpdateStep& step) {
  return {.parameter = block.values,
          .gradient = block.gradients,
          .learning_rate = static_cast<double>(step.learning_rate)};
}

void update_sgd(const RuleSettings& settings, const RowBlock& block, const UpdateStep& step) {
  const bool is_sgd = settings.kind == RuleKind::sgd;
  kernels::sgd_part<float>({.momentum = settings.momentum,
                            .dampening = is_sgd ? settings.dampening : 0.0,
                            .weight_decay = settings.weight_decay,
                            .gradient_scale = 1 / settings.loss_scale,
                            .nesterov = settings.nesterov},
                           {.parameter = block.values,
                            .gradient = block.gradients,
                            .learning_rate = step.learning_rate,
                            .accumulation = block.states[0],
                            .first = is_sgd && step.steps == 0},
                           0, block.count);
}

void update_adam(const RuleSettings& settings, const RowBlock& block, const UpdateStep& step) {
  kernels::adam_part<float>({.scale = scale_of(settings),
                             .beta1 = settings.beta1,
                             .beta2 = settings.beta2,
                             .eps = settings.eps,
                             .nesterov = settings.nesterov},
                            {.mean = block.states[0],
                             .square = block.states[1],
                             .greatest = block.states[2],
                             .steps = static_cast<std::int64_t>(step.steps)},
                            arguments_of(block, step), 0, block.count);
}

}  // namespace

std::size_t RowRule::states() const {
  switch (settings_.kind) {
    case RuleKind::sgd:
      return settings_.momentum != 0 ? 1 : 0;
    case RuleKind::momentum:
    case RuleKind::adagrad:
      return 1;
    case RuleKind::adam:
      return settings_.amsgrad ? 3 : 2;
    case RuleKind::ftrl:
      return 2;
  }
  return 0;
}

float RowRule::initial_state(std::size_t state) const {
  const bool begins_above_0 = settings_.kind == RuleKind::adagrad || settings_.kind == RuleKind::ftrl;
  return begins_above_0 && state == 0 ? static_cast<float>(settings_.initial) : 0.0F;
}

void RowRule::update(const RowBlock& block, const UpdateStep& step) const {
  switch (settings_.kind) {
    case RuleKind::sgd:
    case RuleKind::momentum:
      return update_sgd(settings_, block, step);
    case RuleKind::adam:
      return update_adam(settings_, block, step);
    case RuleKind::adagrad:
      return kernels::adagrad_part<float>(
          {.scale = scale_of(settings_), .eps = settings_.eps, .accumulate = settings_.accumulate},
          block.states[0], arguments_of(block, step), 0, block.count);
    case RuleKind::ftrl:
      return kernels::ftrl_part<float>(
          {.scale = scale_of(settings_), .power = settings_.power, .l1 = settings_.l1, .l2 = settings_.l2},
          {.sum = block.states[0], .linear = block.states[1]}, arguments_of(block, step), 0, block.count);
  }
}

}  // namespace muster::server
