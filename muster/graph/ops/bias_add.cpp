#include "muster/graph/ops/ops.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace bias_add_rows {

Types infer(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const TensorType& bias = signature.inputs[1];
  MUSTER_TRY_VOID(require_floating("bias_add", x));
  MUSTER_TRY_VOID(require_equal_dtypes("bias_add", signature));
  if (x.shape.rank() == 0 || bias.shape.rank() != 1 || x.shape.sizes().back() != bias.shape[0])
    return bad("bias_add: the bias {} must be as long as the last axis of {}", muster::to_string(bias.shape),
               muster::to_string(x.shape));
  return same_as_first(signature);
}

std::vector<Value> gradient(const GradientQuery& query) {
  const Value& g = query.output_gradients[0];
  return {g, apply("sum_to", {g}, {{"shape", query.inputs[1].shape().sizes()}})};
}

struct Settings {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

Prepared prepare(const Signature& signature) {
  const std::int64_t columns = signature.inputs[1].shape[0];
  const std::int64_t rows = columns == 0 ? 0 : signature.inputs[0].shape.elements() / columns;
  return prepared(Settings{rows, columns});
}

template <class T>
void run(const KernelCall& call) {
  const auto& [rows, columns] = call.setting<Settings>();
  kernels::bias_add(call.input<T>(0), call.input<T>(1), call.output<T>(), rows, columns);
}

}  // namespace bias_add_rows
}  // namespace

const Op& bias_add_op() {
  using namespace bias_add_rows;
  static const Op op{
      .name = "bias_add",
      .documentation = "y (..., C) = x (..., C) + bias (C,); float32 or float64.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer,
      .gradient = gradient,
      .kernels = {reference<float>(prepare, run<float>), reference<double>(prepare, run<double>)},
      .sharing = Sharing::reuse,
      .precision = MixedPrecision::widest,
      .schema = {.inputs = {"x", "bias"}},
      .onnx = onnx_as<"Add">,
      .dimensions = elementwise,
  };
  return op;
}

std::vector<const Op*> rows_of_bias_add() { return {&bias_add_op()}; }

}  // namespace muster::graph
