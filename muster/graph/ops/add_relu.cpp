// add_relu and its gradient's counterpart: passes over memory that the compiler saves.
#include "muster/graph/ops/image.h"
#include "muster/graph/ops/ops.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace add_relu_rows {

Types infer_alike(std::string_view op, const Signature& signature) {
  MUSTER_TRY_VOID(require_floating(op, signature.inputs[0]));
  for (const TensorType& type : signature.inputs)
    if (type != signature.inputs[0])
      return bad("{}: {} and {} must be alike", op, to_string(signature.inputs[0]), to_string(type));
  return same_as_first(signature);
}
Types infer(const Signature& signature) { return infer_alike("add_relu", signature); }
Types infer_grad(const Signature& signature) { return infer_alike("add_relu_grad", signature); }

template <class T>
void run(const KernelCall& call) {
  kernels::add_relu(call.input<T>(0), call.input<T>(1), call.output<T>(),
                    {.count = call.setting<std::int64_t>(), .threads = call.threads});
}

template <class T>
void run_grad(const KernelCall& call) {
  kernels::add_relu_grad<T>({.a = call.input<T>(0), .b = call.input<T>(1), .y = call.input<T>(2)},
                            call.output<T>(),
                            {.count = call.setting<std::int64_t>(), .threads = call.threads});
}

}  // namespace add_relu_rows
}  // namespace

const Op& add_relu_op() {
  using namespace add_relu_rows;
  static const Op op{
      .name = "add_relu",
      .documentation = "relu(a + b) of tensors that look alike, in one pass. Made by the compiler.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer,
      .kernels = {reference<float>(count_alike, run<float>), reference<double>(count_alike, run<double>),
                  with_bfloat16(reference<bfloat16>(count_alike, run<bfloat16>))},
      .sharing = Sharing::reuse,
  };
  return op;
}

const Op& add_relu_grad_op() {
  using namespace add_relu_rows;
  static const Op op{
      .name = "add_relu_grad",
      .documentation = "a + b where y > 0, else 0: relu_grad(a + b, y) in one pass. Made by the compiler.",
      .inputs_min = 3,
      .inputs_max = 3,
      .infer = infer_grad,
      .kernels = {reference<float>(count_alike, run_grad<float>),
                  reference<double>(count_alike, run_grad<double>),
                  with_bfloat16(reference<bfloat16>(count_alike, run_grad<bfloat16>))},
      .sharing = Sharing::reuse,
  };
  return op;
}

std::vector<const Op*> rows_of_add_relu() { return {&add_relu_op(), &add_relu_grad_op()}; }

}  // namespace muster::graph
