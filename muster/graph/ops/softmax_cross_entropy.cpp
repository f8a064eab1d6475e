#include "muster/graph/ops/ops.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {

using kernels::CrossEntropySize;
using Reduce = CrossEntropySize::Reduce;
constexpr std::string_view name = "softmax_cross_entropy";

std::string reduction_of(const Attributes& attributes) {
  return attributes.get<std::string>("reduction", "mean");
}

// Labels and class weights, which forward and backward share.
Result<> check(const TensorType& logits, const TensorType& labels, const TensorType* weight) {
  MUSTER_TRY_VOID(require_floating(name, logits));
  if (logits.shape.rank() != 2)
    return bad("{}: logits (N, C) are needed, not {}", name, muster::to_string(logits.shape));
  if (labels.dtype != DType::int32 && labels.dtype != DType::int64)
    return bad("{}: labels must be class numbers, int32 or int64, not {}: cast them", name,
               muster::to_string(labels.dtype));
  if (labels.shape != Shape{logits.shape[0]})
    return bad("{}: logits {} need labels ({},), not {}", name, muster::to_string(logits.shape),
               logits.shape[0], muster::to_string(labels.shape));
  if (weight != nullptr && *weight != TensorType{logits.dtype, {logits.shape[1]}})
    return bad("{}: the class weights must be {} ({},), not {}", name, muster::to_string(logits.dtype),
               logits.shape[1], to_string(*weight));
  return {};
}

Types infer(const Signature& signature) {
  const TensorType& logits = signature.inputs[0];
  const TensorType* weight = signature.inputs.size() == 3 ? &signature.inputs[2] : nullptr;
  MUSTER_TRY_VOID(check(logits, signature.inputs[1], weight));
  const std::string reduction = reduction_of(signature.attributes);
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    return bad("{}: the reduction must be 'mean', 'sum' or 'none', not '{}'", name, reduction);
  const double smoothing = signature.attributes.get("label_smoothing", 0.0);
  if (!(smoothing >= 0 && smoothing <= 1))
    return bad("{}: label_smoothing must lie in [0, 1], not {}", name, smoothing);
  const Shape loss = reduction == "none" ? Shape{logits.shape[0]} : Shape{};
  return std::vector<TensorType>{{logits.dtype, loss}, logits};
}

std::vector<Value> gradient(const GradientQuery& query) {
  if (query.output_gradients[1].defined())
    return {Value::failed(Code::not_provided,
                          fmt::format("the gradient cannot pass through {}'s probabilities", name)),
            Value()};
  std::vector<Value> inputs{query.outputs[1], query.inputs[1], query.output_gradients[0]};
  if (query.inputs.size() == 3) inputs.push_back(query.inputs[2]);
  std::vector<Value> gradients(query.inputs.size());
  gradients[0] = apply("softmax_cross_entropy_grad", inputs, query.attributes);
  return gradients;
}

Types infer_grad(const Signature& signature) {
  const TensorType* weight = signature.inputs.size() == 4 ? &signature.inputs[3] : nullptr;
  MUSTER_TRY_VOID(check(signature.inputs[0], signature.inputs[1], weight));
  return same_as_first(signature);
}

Prepared prepare(const Signature& signature) {
  const Shape& logits = signature.inputs[0].shape;
  const std::string reduction = reduction_of(signature.attributes);
  return prepared(
      CrossEntropySize{.samples = logits[0],
                       .classes = logits[1],
                       .ignore_index = signature.attributes.get("ignore_index", std::int64_t{-100}),
                       .label_smoothing = signature.attributes.get("label_smoothing", 0.0),
                       .reduce = reduction == "mean"  ? Reduce::mean
                                 : reduction == "sum" ? Reduce::sum
                                                      : Reduce::none});
}

// With class weights the kernels read one input more.
struct Weighted {
  CrossEntropySize size;
  bool weighted = false;
};

template <std::size_t weight_index>
Prepared prepare_weighted(const Signature& signature) {
  const Prepared size = prepare(signature);
  return prepared(Weighted{*static_cast<const CrossEntropySize*>(size.settings.get()),
                           signature.inputs.size() > weight_index});
}

template <class L>
void report(const KernelCall& call, const CrossEntropySize& size, std::int64_t sample) {
  *call.failure =
      Error{Code::invalid_argument, fmt::format("{}: the label {} of sample {} is not below the {} classes",
                                                name, call.input<L>(1)[sample], sample, size.classes)};
}

template <class T, class L>
void run(const KernelCall& call) {
  const auto& [size, weighted] = call.setting<Weighted>();
  const auto wrong = kernels::cross_entropy<T, L>(size, {.logits = call.input<T>(0),
                                                         .labels = call.input<L>(1),
                                                         .weight = weighted ? call.input<T>(2) : nullptr,
                                                         .loss = call.output<T>(0),
                                                         .probabilities = call.output<T>(1)});
  if (wrong) report<L>(call, size, *wrong);
}

template <class T, class L>
void run_grad(const KernelCall& call) {
  const auto& [size, weighted] = call.setting<Weighted>();
  const auto wrong = kernels::cross_entropy_grad<T, L>(size, {.probabilities = call.input<T>(0),
                                                              .labels = call.input<L>(1),
                                                              .loss_gradient = call.input<T>(2),
                                                              .weight = weighted ? call.input<T>(3) : nullptr,
                                                              .logits_gradient = call.output<T>(0)});
  if (wrong) report<L>(call, size, *wrong);
}

template <class T, class L>
bool usable(const Signature& signature) {
  return signature.inputs[0].dtype == dtype_of<T> && signature.inputs[1].dtype == dtype_of<L>;
}

template <class T, class L>
Kernel forward_kernel() {
  return {"reference", usable<T, L>, prepare_weighted<2>, run<T, L>};
}
template <class T, class L>
Kernel backward_kernel() {
  return {"reference", usable<T, L>, prepare_weighted<3>, run_grad<T, L>};
}

}  // namespace

const Op& softmax_cross_entropy_op() {
  static const Op op{
      .name = name,
      .documentation =
          "Cross entropy of softmax(logits (N, C)) against labels (N,) (class numbers, int32 or int64), and "
          "the "
          "probabilities (N, C). The loss is a scalar, or (N,) with reduction 'none'; 'mean' divides by the "
          "sum "
          "of the labels' weights. Labels equal to ignore_index do not count; label_smoothing mixes in the "
          "uniform distribution; an optional third input (C,) weighs the classes. A label that is no class "
          "is "
          "an error.",
      .inputs_min = 2,
      .inputs_max = 3,
      .outputs = 2,
      .infer = infer,
      .gradient = gradient,
      .kernels = {forward_kernel<float, std::int32_t>(), forward_kernel<float, std::int64_t>(),
                  forward_kernel<double, std::int32_t>(), forward_kernel<double, std::int64_t>()},
  };
  return op;
}

const Op& softmax_cross_entropy_grad_op() {
  static const Op op{
      .name = "softmax_cross_entropy_grad",
      .documentation =
          "The gradient of the logits from the probabilities (N, C), the labels (N,), the gradient "
          "of the loss, and the class weights if there are any.",
      .inputs_min = 3,
      .inputs_max = 4,
      .infer = infer_grad,
      .kernels = {backward_kernel<float, std::int32_t>(), backward_kernel<float, std::int64_t>(),
                  backward_kernel<double, std::int32_t>(), backward_kernel<double, std::int64_t>()},
  };
  return op;
}

}  // namespace muster::graph
