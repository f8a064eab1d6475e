#include "muster/graph/ops/ops.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {

Types infer(const Signature& signature) {
  MUSTER_TRY_VOID(require_floating("relu", signature.inputs[0]));
  return same_as_first(signature);
}

Types infer_grad(const Signature& signature) {
  if (signature.inputs[0] != signature.inputs[1])
    return bad("relu_grad: dy {} and y {} must be alike", to_string(signature.inputs[0]),
               to_string(signature.inputs[1]));
  return infer(signature);
}

std::vector<Value> gradient(const GradientQuery& query) {
  return {apply("relu_grad", {query.output_gradients[0], query.outputs[0]})};
}

std::vector<Value> gradient_grad(const GradientQuery& query) {
  return {apply("relu_grad", {query.output_gradients[0], query.inputs[1]}), Value()};
}

template <class T>
void run(const KernelCall& call) {
  kernels::relu(call.input<T>(0), call.output<T>(), call.setting<std::int64_t>());
}

template <class T>
void run_grad(const KernelCall& call) {
  kernels::relu_grad(call.input<T>(0), call.input<T>(1), call.output<T>(), call.setting<std::int64_t>());
}

}  // namespace

const Op& relu_op() {
  static const Op op{
      .name = "relu",
      .documentation = "y = max(x, 0), NaN stays NaN; any shape, float32 or float64. The gradient at 0 is 0.",
      .infer = infer,
      .gradient = gradient,
      .kernels = {reference<float>(count, run<float>), reference<double>(count, run<double>)},
      .sharing = Sharing::reuse,
  };
  return op;
}

const Op& relu_grad_op() {
  static const Op op{
      .name = "relu_grad",
      .documentation = "dx = dy where y > 0, else 0, for y = relu(x).",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer_grad,
      .gradient = gradient_grad,
      .kernels = {reference<float>(count, run_grad<float>), reference<double>(count, run_grad<double>)},
      .sharing = Sharing::reuse,
  };
  return op;
}

}  // namespace muster::graph
