// Private to graph: the rows of images.
#pragma once

#include <vector>

#include "muster/graph/op.h"

namespace muster::graph {

const Op& add_relu_op();
const Op& add_relu_grad_op();
const Op& adaptive_avg_pool2d_op();
const Op& adaptive_avg_pool2d_grad_op();
const Op& avg_pool2d_op();
const Op& avg_pool2d_grad_op();
const Op& batch_norm_op();
const Op& batch_norm_grad_op();
const Op& batch_norm_relu_op();
const Op& batch_norm_relu_grad_op();
const Op& channel_sum_op();
const Op& conv2d_op();
const Op& conv2d_grad_input_op();
const Op& conv2d_grad_weight_op();
const Op& max_pool2d_op();
const Op& max_pool2d_grad_op();

}  // namespace muster::graph
