#include "muster/graph/ops/labels.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/ops/training.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace nll_loss_rows {

using kernels::NllArguments;
constexpr std::string_view name = "nll_loss";
constexpr std::string_view rows = "log probabilities";

Types infer(const Signature& signature) {
  MUSTER_TRY_VOID(check_labels(name, rows, signature, 2));
  MUSTER_TRY(const Reduce reduce, reduction_of(name, signature.attributes));
  const TensorType& logs = signature.inputs[0];
  return std::vector<TensorType>{{logs.dtype, reduce == Reduce::none ? Shape{logs.shape[0]} : Shape{}}};
}

Types infer_grad(const Signature& signature) {
  MUSTER_TRY_VOID(check_labels(name, rows, signature, 3));
  return same_as_first(signature);
}

std::vector<Value> gradient(const GradientQuery& query) {
  std::vector<Value> gradients(query.inputs.size());
  gradients[0] = apply("nll_loss_grad", loss_grad_inputs(query, query.inputs[0]), query.attributes);
  return gradients;
}

// The log probabilities are there for their shape only.
std::vector<Value> gradient_of_grad(const GradientQuery& query) {
  std::vector<Value> gradients(query.inputs.size());
  gradients[2] = by_loss_gradient("nll_loss_grad", query);
  return gradients;
}

struct Forward {
  template <class T, class L>
  static void run(const KernelCall& call) {
    const auto& [size, weighted] = call.setting<LabelSettings>();
    const NllArguments<T, L> arguments{.logs = call.input<T>(0),
                                       .labels = call.input<L>(1),
                                       .weight = weighted ? call.input<T>(2) : nullptr,
                                       .loss = call.output<T>()};
    if (const auto wrong = kernels::nll_loss(size, arguments))
      report_label<L>(name, call, size.classes, *wrong);
  }
};

struct Backward {
  template <class T, class L>
  static void run(const KernelCall& call) {
    const auto& [size, weighted] = call.setting<LabelSettings>();
    const NllArguments<T, L> arguments{.labels = call.input<L>(1),
                                       .weight = weighted ? call.input<T>(3) : nullptr,
                                       .loss_gradient = call.input<T>(2),
                                       .logs_gradient = call.output<T>()};
    if (const auto wrong = kernels::nll_loss_grad(size, arguments))
      report_label<L>(name, call, size.classes, *wrong);
  }
};

}  // namespace nll_loss_rows
}  // namespace

const Op& nll_loss_op() {
  using namespace nll_loss_rows;
  static const Op op{
      .name = name,
      .documentation =
          "The negative log likelihood of labels (N,) (class numbers, int32 or int64) under log "
          "probabilities (N, C): -weight[label] x[label]. A scalar, or (N,) with reduction 'none'; 'mean' "
          "divides by the sum of the labels' weights. Labels equal to ignore_index do not count; an optional "
          "third input (C,) weighs the classes. A label that is no class is an error.",
      .inputs_min = 2,
      .inputs_max = 3,
      .infer = infer,
      .gradient = gradient,
      .kernels = label_kernels<Forward, 2>(),
      .precision = MixedPrecision::full,
      .dimensions = loss_dimensions,
  };
  return op;
}

const Op& nll_loss_grad_op() {
  using namespace nll_loss_rows;
  static const Op op{
      .name = "nll_loss_grad",
      .documentation =
          "The gradient of nll_loss's log probabilities (N, C), which are the first input for their shape "
          "only, from the labels (N,), the gradient of the loss, and the class weights if there are any.",
      .inputs_min = 3,
      .inputs_max = 4,
      .infer = infer_grad,
      .gradient = gradient_of_grad,
      .kernels = label_kernels<Backward, 3>(),
      .dimensions = loss_grad_dimensions,
  };
  return op;
}

std::vector<const Op*> rows_of_nll_loss() { return {&nll_loss_op(), &nll_loss_grad_op()}; }

}  // namespace muster::graph
