#include "muster/graph/ops/labels.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"

namespace muster::graph {
namespace {
namespace softmax_cross_entropy_rows {

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
  const Value& dprobabilities = query.output_gradients[1];
  std::vector<Value> gradients(query.inputs.size());
  if (query.output_gradients[0].defined())
    gradients[0] =
        apply("softmax_cross_entropy_grad", loss_grad_inputs(query, query.outputs[1]), query.attributes);
  if (!dprobabilities.defined()) return gradients;
  const Value more = apply("softmax_grad", {dprobabilities, query.outputs[1]}, {{"axis", std::int64_t{1}}});
  gradients[0] = gradients[0].defined() ? plus(gradients[0], more) : more;
  return gradients;
}

// Each row is a p - b, with factors a and b of the sample that do not depend on the probabilities p: what is
// given for ones less what is given for zeros is a.
std::vector<Value> gradient_of_grad(const GradientQuery& query) {
  constexpr std::string_view op = "softmax_cross_entropy_grad";
  const Value& p = query.inputs[0];
  const Value& flow = query.inputs[2];
  std::vector<Value> gradients(query.inputs.size());
  const Value factors =
      minus(recomputed(op, query, filled_like(p, 1), flow), recomputed(op, query, filled_like(p, 0), flow));
  gradients[0] = times(query.output_gradients[0], factors);
  gradients[2] = by_loss_gradient(op, query);
  return gradients;
}

Types infer_grad(const Signature& signature) {
  MUSTER_TRY_VOID(check_labels(name, "logits", signature, 3));
  return same_as_first(signature);
}

struct Forward {
  template <class T, class L>
  static void run(const KernelCall& call) {
    const auto& [size, weighted] = call.setting<LabelSettings>();
    const auto wrong = kernels::cross_entropy<T, L>(size, {.logits = call.input<T>(0),
                                                           .labels = call.input<L>(1),
                                                           .weight = weighted ? call.input<T>(2) : nullptr,
                                                           .loss = call.output<T>(0),
                                                           .probabilities = call.output<T>(1),
                                                           .threads = call.threads});
    if (wrong) report_label<L>(name, call, size.classes, *wrong);
  }
};

struct Backward {
  template <class T, class L>
  static void run(const KernelCall& call) {
    const auto& [size, weighted] = call.setting<LabelSettings>();
    const auto wrong =
        kernels::cross_entropy_grad<T, L>(size, {.probabilities = call.input<T>(0),
                                                 .labels = call.input<L>(1),
                                                 .loss_gradient = call.input<T>(2),
                                                 .weight = weighted ? call.input<T>(3) : nullptr,
                                                 .logits_gradient = call.output<T>(0),
                                                 .threads = call.threads});
    if (wrong) report_label<L>(name, call, size.classes, *wrong);
  }
};

}  // namespace softmax_cross_entropy_rows
}  // namespace

const Op& softmax_cross_entropy_op() {
  using namespace softmax_cross_entropy_rows;
  static const Op op{
      .name = name,
      .documentation =
          "Cross entropy of softmax(logits (N, C)) against labels (N,) (class numbers, int32 or int64), and "
          "the probabilities (N, C). The loss is a scalar, or (N,) with reduction 'none'; 'mean' divides by "
          "the sum of the labels' weights. Labels equal to ignore_index do not count; label_smoothing mixes "
          "in the uniform distribution; an optional third input (C,) weighs the classes. A label that is no "
          "class is an error.",
      .inputs_min = 2,
      .inputs_max = 3,
      .outputs = 2,
      .infer = infer,
      .gradient = gradient,
      .kernels = label_kernels<Forward, 2>(),
      .precision = MixedPrecision::full,
      .dimensions = loss_dimensions,
  };
  return op;
}

const Op& softmax_cross_entropy_grad_op() {
  using namespace softmax_cross_entropy_rows;
  static const Op op{
      .name = "softmax_cross_entropy_grad",
      .documentation =
          "The gradient of the logits from the probabilities (N, C), the labels (N,), the gradient "
          "of the loss, and the class weights if there are any.",
      .inputs_min = 3,
      .inputs_max = 4,
      .infer = infer_grad,
      .gradient = gradient_of_grad,
      .kernels = label_kernels<Backward, 3>(),
      .dimensions = loss_grad_dimensions,
  };
  return op;
}

std::vector<const Op*> rows_of_softmax_cross_entropy() {
  return {&softmax_cross_entropy_op(), &softmax_cross_entropy_grad_op()};
}

}  // namespace muster::graph
