#include "muster/graph/ops/image.h"

namespace muster::graph {

std::vector<const Op*> image_ops() {
  return {&add_relu_op(),
          &add_relu_grad_op(),
          &batch_norm_relu_op(),
          &batch_norm_relu_grad_op(),
          &adaptive_avg_pool2d_op(),
          &adaptive_avg_pool2d_grad_op(),
          &avg_pool2d_op(),
          &avg_pool2d_grad_op(),
          &batch_norm_op(),
          &batch_norm_grad_op(),
          &channel_sum_op(),
          &conv2d_op(),
          &conv2d_grad_input_op(),
          &conv2d_grad_weight_op(),
          &max_pool2d_op(),
          &max_pool2d_grad_op()};
}

}  // namespace muster::graph
