#include "muster/graph/ops/dropout.h"
#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace dropout_rows {

double keep_prob_of(const Attributes& attributes) { return attributes.get("keep_prob", 0.5); }

Result<> check(std::string_view op, const Signature& signature) {
  MUSTER_TRY_VOID(require_floating(op, signature.inputs[0]));
  const double keep_prob = keep_prob_of(signature.attributes);
  if (keep_prob >= 0 && keep_prob <= 1) return {};
  return bad("{}: keep_prob must lie in [0, 1], not {}", op, keep_prob);
}

Types infer(const Signature& signature) {
  MUSTER_TRY_VOID(check("dropout", signature));
  return std::vector<TensorType>{signature.inputs[0], {DType::bool_, signature.inputs[0].shape}};
}

Types infer_grad(const Signature& signature) {
  MUSTER_TRY_VOID(check("dropout_grad", signature));
  if (signature.inputs[1] != TensorType{DType::bool_, signature.inputs[0].shape})
    return bad("dropout_grad: dy {} needs a mask of bool, not {}", to_string(signature.inputs[0]),
               to_string(signature.inputs[1]));
  return same_as_first(signature);
}

std::vector<Value> gradient(const GradientQuery& query) {
  return {apply("dropout_grad", {query.output_gradients[0], query.outputs[1]},
                {{"keep_prob", keep_prob_of(query.attributes)}})};
}

std::vector<Value> gradient_grad(const GradientQuery& query) {
  return {apply("dropout_grad", {query.output_gradients[0], query.inputs[1]}, query.attributes), Value()};
}

struct Settings {
  DType dtype = DType::float32;
  kernels::DropoutSize size;
  DropoutPlace place;
};

Prepared prepare(const Signature& signature) {
  const Shape& shape = signature.inputs[0].shape;
  const std::int64_t samples = shape.rank() == 0 ? 1 : shape[0];
  return prepared(Settings{signature.inputs[0].dtype,
                           {.samples = samples,
                            .elements = samples == 0 ? 0 : shape.elements() / samples,
                            .keep_prob = keep_prob_of(signature.attributes)},
                           dropout_place(signature.attributes)});
}

void run(const KernelCall& call) {
  const auto& [dtype, size, place] = call.setting<Settings>();
  kernels::dropout(size, dropout_draw(*call.context, place, size.samples), dtype, call.inputs[0],
                   call.outputs[0], call.output<bool>(1), call.threads);
}

void run_grad(const KernelCall& call) {
  const auto& [dtype, size, place] = call.setting<Settings>();
  kernels::dropout_grad(size.keep_prob, dtype, call.inputs[0], call.input<bool>(1), call.outputs[0],
                        size.samples * size.elements, call.threads);
}

Result<> to_onnx(OnnxCall& call) {
  return call.refuse(
      "it is training, and an inference drops nothing: call set_train(False) on the cell that holds "
      "it");
}

}  // namespace dropout_rows
}  // namespace

DropoutPlace dropout_place(const Attributes& attributes) {
  const auto number = [&attributes](std::string_view name) {
    return static_cast<std::uint64_t>(attributes.get(name, std::int64_t{0}));
  };
  return {number("stream"), number("part")};
}

kernels::DropoutDraw dropout_draw(const RunContext& context, const DropoutPlace& place,
                                  std::int64_t samples) {
  const std::uint64_t samples_before = place.part * static_cast<std::uint64_t>(samples);
  return {.seed = context.seed,
          .step = context.step,
          .stream = place.stream,
          .first_sample = context.first_sample + samples_before * context.sample_stride,
          .sample_stride = context.sample_stride};
}

const Op& dropout_op() {
  using namespace dropout_rows;
  static const Op op{
      .name = "dropout",
      .documentation =
          "y = x / keep_prob with probability keep_prob (0.5 unless set), else 0, element by element, and "
          "the mask of the elements that stayed (bool). x (N, ...), float32 or float64, N samples. Which "
          "stay depends on the job's seed, the step, `stream` and the sample's number in the step of all "
          "workers, never on how many workers share the work. `part` counts from 0 which of the equal parts "
          "of a batch x is. Source: Srivastava et al., Dropout, JMLR 15, 2014.",
      .outputs = 2,
      .infer = infer,
      .gradient = gradient,
      .kernels = {{"reference", any_signature, prepare, run}},
      .sharing = Sharing::reuse,
      .onnx = to_onnx,
      .dimensions = dropout_dimensions,
  };
  return op;
}

const Op& dropout_grad_op() {
  using namespace dropout_rows;
  static const Op op{
      .name = "dropout_grad",
      .documentation = "dx = dy / keep_prob where the mask is true, else 0.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer_grad,
      .gradient = gradient_grad,
      .kernels = {{"reference", any_signature, prepare, run_grad}},
      .sharing = Sharing::reuse,
      .dimensions = elementwise,
  };
  return op;
}

std::vector<const Op*> rows_of_dropout() { return {&dropout_op(), &dropout_grad_op()}; }

}  // namespace muster::graph
