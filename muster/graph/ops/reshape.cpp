#include "muster/graph/ops/ops.h"

namespace muster::graph {
namespace {

Types infer(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const Shape shape(signature.attributes.get("shape", std::vector<std::int64_t>{}));
  for (const std::int64_t size : shape)
    if (size < 0) return bad("reshape: {} has a negative size", muster::to_string(shape));
  if (shape.elements() != x.shape.elements())
    return bad("reshape: {} has {} elements, {} has {}", muster::to_string(x.shape), x.shape.elements(),
               muster::to_string(shape), shape.elements());
  return std::vector<TensorType>{{x.dtype, shape}};
}

std::vector<Value> gradient(const GradientQuery& query) {
  return {apply("reshape", {query.output_gradients[0]}, {{"shape", query.inputs[0].shape().sizes()}})};
}

}  // namespace

const Op& reshape_op() {
  static const Op op{
      .name = "reshape",
      .documentation = "The same elements under `shape`, which has as many; any dtype. Nothing is copied.",
      .infer = infer,
      .gradient = gradient,
      .kernels = {},
      .sharing = Sharing::view,
  };
  return op;
}

}  // namespace muster::graph
