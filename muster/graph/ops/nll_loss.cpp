#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/training.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {

using kernels::CrossEntropySize;
using kernels::NllArguments;
using Reduce = CrossEntropySize::Reduce;
constexpr std::string_view name = "nll_loss";

Result<Reduce> reduction_of(const Attributes& attributes) {
  const std::string reduction = attributes.get<std::string>("reduction", "mean");
  if (reduction == "mean") return Reduce::mean;
  if (reduction == "sum") return Reduce::sum;
  if (reduction == "none") return Reduce::none;
  return bad("{}: the reduction must be 'mean', 'sum' or 'none', not '{}'", name, reduction);
}

Result<> check(const TensorType& logs, const TensorType& labels, const TensorType* weight) {
  MUSTER_TRY_VOID(require_floating(name, logs));
  if (logs.shape.rank() != 2)
    return bad("{}: log probabilities (N, C) are needed, not {}", name, muster::to_string(logs.shape));
  if (labels.dtype != DType::int32 && labels.dtype != DType::int64)
    return bad("{}: labels must be class numbers, int32 or int64, not {}: cast them", name,
               muster::to_string(labels.dtype));
  if (labels.shape != Shape{logs.shape[0]})
    return bad("{}: log probabilities {} need labels ({},), not {}", name, muster::to_string(logs.shape),
               logs.shape[0], muster::to_string(labels.shape));
  if (weight != nullptr && *weight != TensorType{logs.dtype, {logs.shape[1]}})
    return bad("{}: the class weights must be {} ({},), not {}", name, muster::to_string(logs.dtype),
               logs.shape[1], to_string(*weight));
  return {};
}

// Inputs: log probabilities, labels, `before_weight` - 2 others, class weights if there are any.
template <std::size_t before_weight>
Result<> check_inputs(const Signature& signature) {
  const bool weighted = signature.inputs.size() > before_weight;
  return check(signature.inputs[0], signature.inputs[1],
               weighted ? &signature.inputs[before_weight] : nullptr);
}

Types infer(const Signature& signature) {
  MUSTER_TRY_VOID(check_inputs<2>(signature));
  MUSTER_TRY(const Reduce reduce, reduction_of(signature.attributes));
  const TensorType& logs = signature.inputs[0];
  return std::vector<TensorType>{{logs.dtype, reduce == Reduce::none ? Shape{logs.shape[0]} : Shape{}}};
}

Types infer_grad(const Signature& signature) {
  MUSTER_TRY_VOID(check_inputs<3>(signature));
  return same_as_first(signature);
}

std::vector<Value> gradient(const GradientQuery& query) {
  std::vector<Value> inputs{query.inputs[0], query.inputs[1], query.output_gradients[0]};
  if (query.inputs.size() == 3) inputs.push_back(query.inputs[2]);
  std::vector<Value> gradients(query.inputs.size());
  gradients[0] = apply("nll_loss_grad", inputs, query.attributes);
  return gradients;
}

struct Settings {
  CrossEntropySize size;
  bool weighted = false;
};

template <std::size_t before_weight>
Prepared prepare(const Signature& signature) {
  const Shape& logs = signature.inputs[0].shape;
  return prepared(Settings{{.samples = logs[0],
                            .classes = logs[1],
                            .ignore_index = signature.attributes.get("ignore_index", std::int64_t{-100}),
                            .reduce = *reduction_of(signature.attributes)},
                           signature.inputs.size() > before_weight});
}

template <class L>
void report(const KernelCall& call, const CrossEntropySize& size, std::int64_t sample) {
  *call.failure =
      Error{Code::invalid_argument, fmt::format("{}: the label {} of sample {} is not below the {} classes",
                                                name, call.input<L>(1)[sample], sample, size.classes)};
}

template <class T, class L>
void run(const KernelCall& call) {
  const auto& [size, weighted] = call.setting<Settings>();
  const NllArguments<T, L> arguments{.logs = call.input<T>(0),
                                     .labels = call.input<L>(1),
                                     .weight = weighted ? call.input<T>(2) : nullptr,
                                     .loss = call.output<T>()};
  if (const auto wrong = kernels::nll_loss(size, arguments)) report<L>(call, size, *wrong);
}

template <class T, class L>
void run_grad(const KernelCall& call) {
  const auto& [size, weighted] = call.setting<Settings>();
  const NllArguments<T, L> arguments{.labels = call.input<L>(1),
                                     .weight = weighted ? call.input<T>(3) : nullptr,
                                     .loss_gradient = call.input<T>(2),
                                     .logs_gradient = call.output<T>()};
  if (const auto wrong = kernels::nll_loss_grad(size, arguments)) report<L>(call, size, *wrong);
}

template <class T, class L>
bool usable(const Signature& signature) {
  return signature.inputs[0].dtype == dtype_of<T> && signature.inputs[1].dtype == dtype_of<L>;
}

template <class T, class L>
Kernel forward_kernel() {
  return {"reference", usable<T, L>, prepare<2>, run<T, L>};
}
template <class T, class L>
Kernel backward_kernel() {
  return {"reference", usable<T, L>, prepare<3>, run_grad<T, L>};
}

}  // namespace

const Op& nll_loss_op() {
  static const Op op{
      .name = name,
      .documentation =
          "The negative log likelihood of labels (N,) (class numbers, int32 or int64) under log "
          "probabilities "
          "(N, C): -weight[label] x[label]. A scalar, or (N,) with reduction 'none'; 'mean' divides by the "
          "sum of "
          "the labels' weights. Labels equal to ignore_index do not count; an optional third input (C,) "
          "weighs "
          "the classes. A label that is no class is an error.",
      .inputs_min = 2,
      .inputs_max = 3,
      .infer = infer,
      .gradient = gradient,
      .kernels = {forward_kernel<float, std::int32_t>(), forward_kernel<float, std::int64_t>(),
                  forward_kernel<double, std::int32_t>(), forward_kernel<double, std::int64_t>()},
  };
  return op;
}

const Op& nll_loss_grad_op() {
  static const Op op{
      .name = "nll_loss_grad",
      .documentation =
          "The gradient of nll_loss's log probabilities (N, C), which are the first input for their shape "
          "only, "
          "from the labels (N,), the gradient of the loss, and the class weights if there are any.",
      .inputs_min = 3,
      .inputs_max = 4,
      .infer = infer_grad,
      .kernels = {backward_kernel<float, std::int32_t>(), backward_kernel<float, std::int64_t>(),
                  backward_kernel<double, std::int32_t>(), backward_kernel<double, std::int64_t>()},
  };
  return op;
}

}  // namespace muster::graph
