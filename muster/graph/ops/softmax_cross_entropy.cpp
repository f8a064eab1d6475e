#include "muster/graph/ops/labels.h"

namespace muster::graph {
namespace {

constexpr std::string_view name = "softmax_cross_entropy";

Types infer(const Signature& signature) {
  const TensorType& logits = signature.inputs[0];
  MUSTER_TRY_VOID(check_labels(name, "logits", signature, 2));
  MUSTER_TRY(const Reduce reduce, reduction_of(name, signature.attributes));
  const double smoothing = signature.attributes.get("label_smoothing", 0.0);
  if (!(smoothing >= 0 && smoothing <= 1))
    return bad("{}: label_smoothing must lie in [0, 1], not {}", name, smoothing);
  const Shape loss = reduce == Reduce::none ? Shape{logits.shape[0]} : Shape{};
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
  MUSTER_TRY_VOID(check_labels(name, "logits", signature, 3));
  return same_as_first(signature);
}

template <class T, class L>
void run(const KernelCall& call) {
  const auto& [size, weighted] = call.setting<LabelSettings>();
  const auto wrong = kernels::cross_entropy<T, L>(size, {.logits = call.input<T>(0),
                                                         .labels = call.input<L>(1),
                                                         .weight = weighted ? call.input<T>(2) : nullptr,
                                                         .loss = call.output<T>(0),
                                                         .probabilities = call.output<T>(1)});
  if (wrong) report_label<L>(name, call, size.classes, *wrong);
}

template <class T, class L>
void run_grad(const KernelCall& call) {
  const auto& [size, weighted] = call.setting<LabelSettings>();
  const auto wrong = kernels::cross_entropy_grad<T, L>(size, {.probabilities = call.input<T>(0),
                                                              .labels = call.input<L>(1),
                                                              .loss_gradient = call.input<T>(2),
                                                              .weight = weighted ? call.input<T>(3) : nullptr,
                                                              .logits_gradient = call.output<T>(0)});
  if (wrong) report_label<L>(name, call, size.classes, *wrong);
}

template <class T, class L>
Kernel forward_kernel() {
  return {"reference", has_labels<T, L>, prepare_labels<2>, run<T, L>};
}
template <class T, class L>
Kernel backward_kernel() {
  return {"reference", has_labels<T, L>, prepare_labels<3>, run_grad<T, L>};
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
