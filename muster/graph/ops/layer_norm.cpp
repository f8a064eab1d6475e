#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/rules.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {

Result<std::size_t> begin_axis(const Shape& shape, const Attributes& attributes) {
  return axis_at("layer_norm", shape, attributes.get("begin_norm_axis", std::int64_t{-1}));
}

// The axes before `begin`, or those from it on.
Shape leading(const Shape& shape, std::size_t begin) {
  return Shape({shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(begin)});
}
Shape trailing(const Shape& shape, std::size_t begin) {
  return Shape({shape.begin() + static_cast<std::ptrdiff_t>(begin), shape.end()});
}

Types infer(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  MUSTER_TRY_VOID(require_floating("layer_norm", x));
  MUSTER_TRY(const std::size_t begin, begin_axis(x.shape, signature.attributes));
  const TensorType wanted{x.dtype, trailing(x.shape, begin)};
  for (std::size_t i : {1, 2})
    if (signature.inputs[i] != wanted)
      return bad("layer_norm: {} must be {}, not {}", i == 1 ? "gamma" : "beta", to_string(wanted),
                 to_string(signature.inputs[i]));
  const TensorType statistics{x.dtype, leading(x.shape, begin)};
  return std::vector<TensorType>{x, statistics, statistics};
}

std::vector<Value> gradient(const GradientQuery& query) {
  if (query.output_gradients[1].defined() || query.output_gradients[2].defined())
    return {Value::failed(Code::not_provided, "the gradient cannot pass through layer_norm's statistics"),
            {},
            {}};
  const Value inputs[] = {query.output_gradients[0], query.inputs[0], query.inputs[1], query.outputs[1],
                          query.outputs[2]};
  return apply_all("layer_norm_grad", inputs, query.attributes);
}

Types infer_grad(const Signature& signature) {
  const TensorType& x = signature.inputs[1];
  MUSTER_TRY_VOID(require_floating("layer_norm_grad", x));
  MUSTER_TRY(const std::size_t begin, begin_axis(x.shape, signature.attributes));
  const TensorType gamma{x.dtype, trailing(x.shape, begin)};
  const TensorType statistics{x.dtype, leading(x.shape, begin)};
  const TensorType* wanted[] = {&x, &x, &gamma, &statistics, &statistics};
  for (std::size_t i = 0; i < 5; ++i)
    if (signature.inputs[i] != *wanted[i])
      return bad("layer_norm_grad: input {} must be {}, not {}", i, to_string(*wanted[i]),
                 to_string(signature.inputs[i]));
  return std::vector<TensorType>{x, gamma, gamma};
}

struct Settings {
  DType dtype = DType::float32;
  kernels::LayerNormSize size;
};

template <std::size_t x_index>
Prepared prepare(const Signature& signature) {
  const TensorType& x = signature.inputs[x_index];
  const std::size_t begin = *begin_axis(x.shape, signature.attributes);
  return prepared(Settings{x.dtype,
                           {.rows = leading(x.shape, begin).elements(),
                            .columns = trailing(x.shape, begin).elements(),
                            .eps = signature.attributes.get("eps", 1e-5)}});
}

void run(const KernelCall& call) {
  const auto& [dtype, size] = call.setting<Settings>();
  kernels::layer_norm(size, dtype,
                      {.x = call.inputs[0],
                       .gamma = call.inputs[1],
                       .beta = call.inputs[2],
                       .y = call.outputs[0],
                       .mean = call.outputs[1],
                       .rstd = call.outputs[2]},
                      call.threads);
}

void run_grad(const KernelCall& call) {
  const auto& [dtype, size] = call.setting<Settings>();
  kernels::layer_norm_grad(size, dtype,
                           {.dy = call.inputs[0],
                            .x = call.inputs[1],
                            .gamma = call.inputs[2],
                            .mean = call.inputs[3],
                            .rstd = call.inputs[4],
                            .dx = call.outputs[0],
                            .dgamma = call.outputs[1],
                            .dbeta = call.outputs[2]},
                           call.threads);
}

}  // namespace

const Op& layer_norm_op() {
  static const Op op{
      .name = "layer_norm",
      .documentation =
          "y = (x - mean) / sqrt(variance + eps) gamma + beta over the axes from begin_norm_axis (-1 unless "
          "set) "
          "on; gamma and beta have the shape of those axes, eps is 1e-5 unless set; float32 or float64, "
          "statistics in double. Outputs: y, and the mean and 1 / sqrt(variance + eps) that the gradient "
          "needs. "
          "Source: Ba, Kiros, Hinton, Layer normalization, arXiv 1607.06450.",
      .inputs_min = 3,
      .inputs_max = 3,
      .outputs = 3,
      .infer = infer,
      .gradient = gradient,
      .kernels = {{"reference", any_signature, prepare<0>, run}},
  };
  return op;
}

const Op& layer_norm_grad_op() {
  static const Op op{
      .name = "layer_norm_grad",
      .documentation = "dx, dgamma and dbeta from dy, x, gamma and the statistics that layer_norm gave.",
      .inputs_min = 5,
      .inputs_max = 5,
      .outputs = 3,
      .infer = infer_grad,
      .kernels = {{"reference", any_signature, prepare<1>, run_grad}},
  };
  return op;
}

}  // namespace muster::graph
