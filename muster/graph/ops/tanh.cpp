#include "muster/graph/ops/ops.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {

Types infer(const Signature& signature) {
  MUSTER_TRY_VOID(require_floating("tanh", signature.inputs[0]));
  return same_as_first(signature);
}

Types infer_grad(const Signature& signature) {
  if (signature.inputs[0] != signature.inputs[1])
    return bad("tanh_grad: dy {} and y {} must be alike", to_string(signature.inputs[0]),
               to_string(signature.inputs[1]));
  return infer(signature);
}

std::vector<Value> gradient(const GradientQuery& query) {
  return {apply("tanh_grad", {query.output_gradients[0], query.outputs[0]})};
}

// dx = dy (1 - y^2): d/d(dy) = 1 - y^2, d/dy = -2 dy y.
std::vector<Value> gradient_grad(const GradientQuery& query) {
  const Value& g = query.output_gradients[0];
  const Value& dy = query.inputs[0];
  const Value& y = query.inputs[1];
  const Value minus_two =
      apply("fill", std::span<const Value>{},
            {{"dtype", y.dtype()}, {"shape", std::vector<std::int64_t>{}}, {"value", -2.0}});
  return {apply("tanh_grad", {g, y}), apply("mul", {apply("mul", {g, dy}), apply("mul", {y, minus_two})})};
}

template <class T>
void run(const KernelCall& call) {
  kernels::tanh(call.input<T>(0), call.output<T>(), call.setting<std::int64_t>());
}

template <class T>
void run_grad(const KernelCall& call) {
  kernels::tanh_grad(call.input<T>(0), call.input<T>(1), call.output<T>(), call.setting<std::int64_t>());
}

}  // namespace

const Op& tanh_op() {
  static const Op op{
      .name = "tanh",
      .documentation = "y = tanh(x); any shape, float32 or float64.",
      .infer = infer,
      .gradient = gradient,
      .kernels = {reference<float>(count, run<float>), reference<double>(count, run<double>)},
      .sharing = Sharing::reuse,
  };
  return op;
}

const Op& tanh_grad_op() {
  static const Op op{
      .name = "tanh_grad",
      .documentation = "dx = dy (1 - y^2), for y = tanh(x).",
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
