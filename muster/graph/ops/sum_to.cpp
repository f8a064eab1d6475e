// sum_to, the reverse of broadcast_to.
#include "muster/graph/ops/array.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace sum_to_rows {

Shape wanted_shape(const Signature& signature) {
  return Shape(signature.attributes.get("shape", std::vector<std::int64_t>{}));
}

Types infer_sum_to(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const Shape shape = wanted_shape(signature);
  MUSTER_TRY_VOID(require_floating("sum_to", x));
  if (!broadcasts_to(shape, x.shape))
    return bad("sum_to: {} cannot be summed to {}", muster::to_string(x.shape), muster::to_string(shape));
  return std::vector<TensorType>{{x.dtype, shape}};
}

std::vector<Value> gradient_sum_to(const GradientQuery& query) {
  return {apply("broadcast_to", {query.output_gradients[0]}, {{"shape", query.inputs[0].shape().sizes()}})};
}

struct SumSettings {
  DType dtype = DType::float32;
  kernels::ReduceLoops loops;
};

Prepared prepare_sum(const Signature& signature) {
  const Shape& in = signature.inputs[0].shape;
  const Shape& out = signature.outputs[0].shape;
  std::vector<bool> folded(in.rank(), true);
  for (std::size_t back = 1; back <= out.rank(); ++back)
    folded[in.rank() - back] = out[out.rank() - back] == 1;
  return prepared(SumSettings{signature.inputs[0].dtype, kernels::reduce_loops(in, folded)});
}

void run_sum(const KernelCall& call) {
  const auto& [dtype, loops] = call.setting<SumSettings>();
  kernels::reduce(kernels::Reduce::sum, dtype, loops, call.inputs[0], call.outputs[0], call.threads);
}

void run_sum_reference(const KernelCall& call) {
  const auto& [dtype, loops] = call.setting<SumSettings>();
  kernels::reduce_reference(kernels::Reduce::sum, dtype, loops, call.inputs[0], call.outputs[0]);
}

}  // namespace sum_to_rows
}  // namespace

const Op& sum_to_op() {
  using namespace sum_to_rows;
  static const Op op{
      .name = "sum_to",
      .documentation = "The sum that undoes broadcasting from `shape`; float32 or float64, added in double.",
      .infer = infer_sum_to,
      .gradient = gradient_sum_to,
      .kernels = {with_bfloat16({"runs", any_signature, prepare_sum, run_sum}),
                  with_bfloat16({"reference", any_signature, prepare_sum, run_sum_reference})},
      .dimensions = sum_to_dimensions,
  };
  return op;
}

std::vector<const Op*> rows_of_sum_to() { return {&sum_to_op()}; }

}  // namespace muster::graph
