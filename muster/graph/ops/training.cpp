#include "muster/graph/ops/training.h"

namespace muster::graph {

std::vector<const Op*> training_ops() {
  return {&adagrad_op(),      &adam_op(), &adam_weight_decay_op(), &assign_op(),   &assign_add_op(),
          &decayed_rate_op(), &lars_op(), &listed_rate_op(),       &nll_loss_op(), &nll_loss_grad_op(),
          &rms_prop_op()};
}

}  // namespace muster::graph
