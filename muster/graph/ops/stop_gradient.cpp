#include "muster/graph/ops/ops.h"
#include "muster/graph/sharding/dimensions.h"

namespace muster::graph {
namespace {
namespace stop_gradient_rows {

std::vector<Value> nothing_flows(const GradientQuery&) { return {Value()}; }

}  // namespace stop_gradient_rows
}  // namespace

const Op& stop_gradient_op() {
  using namespace stop_gradient_rows;
  static const Op op{
      .name = "stop_gradient",
      .documentation =
          "x itself, through which no gradient passes: x counts as a constant. Any shape and dtype; nothing "
          "is copied.",
      .infer = same_as_first,
      .gradient = nothing_flows,
      .kernels = {},
      .sharing = Sharing::view,
      .schema = {.inputs = {"value"}, .mindspore = {{"stop_gradient"}}},
      .onnx = onnx_as<"Identity">,
      .dimensions = elementwise,
  };
  return op;
}

std::vector<const Op*> rows_of_stop_gradient() { return {&stop_gradient_op()}; }

}  // namespace muster::graph
