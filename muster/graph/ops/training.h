// Private to graph: the rows of training beside the formulas of networks: updates, schedules, losses.
#pragma once

#include <vector>

#include "muster/graph/op.h"

namespace muster::graph {

std::vector<const Op*> training_ops();

const Op& adagrad_op();
const Op& adam_op();
const Op& adam_weight_decay_op();
const Op& assign_op();
const Op& assign_add_op();
const Op& decayed_rate_op();
const Op& lars_op();
const Op& listed_rate_op();
const Op& nll_loss_op();
const Op& nll_loss_grad_op();
const Op& rms_prop_op();

}  // namespace muster::graph
