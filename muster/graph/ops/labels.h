// Private to graph: parts shared by losses over rows of classes (N, C) and class numbers (N,).
#pragma once

#include "muster/graph/ops/ops.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {

using Reduce = kernels::CrossEntropySize::Reduce;

// The attribute `reduction`, or an error that names `op` and the choices.
Result<Reduce> reduction_of(std::string_view op, const Attributes& attributes);

// Inputs 0 and 1 are the rows ("logits") and the labels; the one at `weight_index`, if there is one, weighs
// the classes. Checks the reduction too.
Result<> check_labels(std::string_view op, std::string_view rows, const Signature& signature,
                      std::size_t weight_index);

// With class weights the kernels read one input more.
struct LabelSettings {
  kernels::CrossEntropySize size;
  bool weighted = false;
};

template <std::size_t weight_index>
Prepared prepare_labels(const Signature& signature) {
  const Shape& rows = signature.inputs[0].shape;
  const Attributes& attributes = signature.attributes;
  return prepared(LabelSettings{{.samples = rows[0],
                                 .classes = rows[1],
                                 .ignore_index = attributes.get("ignore_index", std::int64_t{-100}),
                                 .label_smoothing = attributes.get("label_smoothing", 0.0),
                                 .reduce = *reduction_of("", attributes)},
                                signature.inputs.size() > weight_index});
}

template <class L>
void report_label(std::string_view op, const KernelCall& call, std::int64_t classes, std::int64_t sample) {
  *call.failure =
      Error{Code::invalid_argument, fmt::format("{}: the label {} of sample {} is not below the {} classes",
                                                op, call.input<L>(1)[sample], sample, classes)};
}

// For the gradient rule of a row "<loss>_grad" with the inputs (rows, labels, gradient of the loss, weights):
// the row computed for other `rows` and `loss_gradient`, and what flows back to the gradient of the loss, in
// which it is linear.
Value recomputed(std::string_view op, const GradientQuery& query, const Value& rows,
                 const Value& loss_gradient);
Value by_loss_gradient(std::string_view op, const GradientQuery& query);

// The inputs of the row "<loss>_grad" for the gradient of `query`, a loss: `rows`, its labels, the gradient
// that flows to it, its class weights if there are any.
std::vector<Value> loss_grad_inputs(const GradientQuery& query, const Value& rows);

// Rows of T, labels of L.
template <class T, class L>
bool has_labels(const Signature& signature) {
  return signature.inputs[0].dtype == dtype_of<T> && signature.inputs[1].dtype == dtype_of<L>;
}

// Loss::run<T, L> as a kernel for each pair of such dtypes.
template <class Loss, std::size_t weight_index>
std::vector<Kernel> label_kernels() {
  const auto kernel = []<class T, class L>() -> Kernel {
    return {"reference", has_labels<T, L>, prepare_labels<weight_index>, Loss::template run<T, L>};
  };
  return {
      kernel.template operator()<float, std::int32_t>(), kernel.template operator()<float, std::int64_t>(),
      kernel.template operator()<double, std::int32_t>(), kernel.template operator()<double, std::int64_t>()};
}

}  // namespace muster::graph
