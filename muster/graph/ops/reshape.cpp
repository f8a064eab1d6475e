#include <optional>

#include "muster/graph/ops/ops.h"
#include "muster/graph/sharding/dimensions.h"

namespace muster::graph {
namespace {
namespace reshape_rows {

// A size of -1, at most one, is what the others leave.
Types infer(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const Shape wanted(signature.attributes.get("shape", std::vector<std::int64_t>{}));
  Shape shape = wanted;
  std::optional<std::size_t> open;
  std::int64_t known = 1;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] < -1 || (shape[axis] == -1 && open))
      return bad("reshape: {} has a negative size; one may be -1: what the others leave",
                 muster::to_string(wanted));
    if (shape[axis] == -1)
      open = axis;
    else
      known *= shape[axis];
  }
  if (open) shape[*open] = known == 0 ? 0 : x.shape.elements() / known;
  if (open && shape.elements() != x.shape.elements())
    return bad("reshape: {} has {} elements, which {} does not divide", muster::to_string(x.shape),
               x.shape.elements(), muster::to_string(wanted));
  if (shape.elements() != x.shape.elements())
    return bad("reshape: {} has {} elements, {} has {}", muster::to_string(x.shape), x.shape.elements(),
               muster::to_string(shape), shape.elements());
  return std::vector<TensorType>{{x.dtype, shape}};
}

std::vector<Value> gradient(const GradientQuery& query) {
  return {apply("reshape", {query.output_gradients[0]}, {{"shape", query.inputs[0].shape().sizes()}})};
}

}  // namespace reshape_rows
}  // namespace

namespace {
namespace reshape_rows {

// One axis may follow the batch: it is what the others leave.
Result<> to_onnx(OnnxCall& call) {
  OnnxCall::End out = call.out();
  if (std::count(out.open.begin(), out.open.end(), true) == 1) {
    const auto open = std::find(out.open.begin(), out.open.end(), true);
    out.type.shape[static_cast<std::size_t>(open - out.open.begin())] = -1;
    *open = false;
  }
  MUSTER_TRY(const std::string shape, call.shape_of(out));
  return call.give("Reshape", {call.input(), shape}, {{"allowzero", std::int64_t{1}}});
}

}  // namespace reshape_rows
}  // namespace

const Op& reshape_op() {
  using namespace reshape_rows;
  static const Op op{
      .name = "reshape",
      .documentation =
          "The same elements under `shape`, which has as many; a size of -1 is what the others leave. Any "
          "dtype. Nothing is copied.",
      .infer = infer,
      .gradient = gradient,
      .kernels = {},
      .sharing = Sharing::view,
      .onnx = to_onnx,
      .dimensions = reshape_dimensions,
  };
  return op;
}

std::vector<const Op*> rows_of_reshape() { return {&reshape_op()}; }

}  // namespace muster::graph
