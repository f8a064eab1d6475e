#include "muster/graph/ops/ops.h"

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/image.h"

namespace muster::graph {

std::vector<const Op*> all_ops() {
  std::vector<const Op*> rows{&add_op(),
                              &all_reduce_op(),
                              &argmax_op(),
                              &bias_add_op(),
                              &cast_op(),
                              &dense_op(),
                              &div_op(),
                              &equal_op(),
                              &fill_op(),
                              &matmul_op(),
                              &momentum_op(),
                              &mul_op(),
                              &reduce_mean_op(),
                              &reduce_sum_op(),
                              &relu_op(),
                              &relu_grad_op(),
                              &reshape_op(),
                              &sgd_op(),
                              &softmax_cross_entropy_op(),
                              &softmax_cross_entropy_grad_op(),
                              &sub_op(),
                              &sum_to_op(),
                              &tanh_op(),
                              &tanh_grad_op()};
  for (const Op* row : array_ops()) rows.push_back(row);
  for (const Op* row : image_ops()) rows.push_back(row);
  return rows;
}

Types same_as_first(const Signature& signature) { return std::vector<TensorType>{signature.inputs[0]}; }

Result<> require_floating(std::string_view op, const TensorType& type) {
  if (is_floating(type.dtype)) return {};
  return bad("{}: float32 or float64 is needed, not {}", op, muster::to_string(type.dtype));
}

Result<> require_equal_dtypes(std::string_view op, const Signature& signature) {
  for (std::size_t i = 1; i < signature.inputs.size(); ++i)
    if (signature.inputs[i].dtype != signature.inputs[0].dtype)
      return bad("{}: {} and {} differ in dtype: cast one of them", op, to_string(signature.inputs[0]),
                 to_string(signature.inputs[i]));
  return {};
}

}  // namespace muster::graph
