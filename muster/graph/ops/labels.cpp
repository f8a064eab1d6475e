#include "muster/graph/ops/labels.h"

#include "muster/graph/ops/rules.h"

namespace muster::graph {

Result<Reduce> reduction_of(std::string_view op, const Attributes& attributes) {
  const std::string reduction = attributes.get<std::string>("reduction", "mean");
  if (reduction == "mean") return Reduce::mean;
  if (reduction == "sum") return Reduce::sum;
  if (reduction == "none") return Reduce::none;
  return bad("{}: the reduction must be 'mean', 'sum' or 'none', not '{}'", op, reduction);
}

Result<> check_labels(std::string_view op, std::string_view rows, const Signature& signature,
                      std::size_t weight_index) {
  const TensorType& given = signature.inputs[0];
  const TensorType& labels = signature.inputs[1];
  MUSTER_TRY_VOID(require_floating(op, given));
  if (given.shape.rank() != 2)
    return bad("{}: {} (N, C) are needed, not {}", op, rows, muster::to_string(given.shape));
  if (labels.dtype != DType::int32 && labels.dtype != DType::int64)
    return bad("{}: labels must be class numbers, int32 or int64, not {}: cast them", op,
               muster::to_string(labels.dtype));
  if (labels.shape != Shape{given.shape[0]})
    return bad("{}: {} {} need labels ({},), not {}", op, rows, muster::to_string(given.shape),
               given.shape[0], muster::to_string(labels.shape));
  MUSTER_TRY_VOID(reduction_of(op, signature.attributes));
  if (signature.inputs.size() <= weight_index) return {};
  const TensorType& weight = signature.inputs[weight_index];
  if (weight != TensorType{given.dtype, {given.shape[1]}})
    return bad("{}: the class weights must be {} ({},), not {}", op, muster::to_string(given.dtype),
               given.shape[1], to_string(weight));
  return {};
}

std::vector<Value> loss_grad_inputs(const GradientQuery& query, const Value& rows) {
  std::vector<Value> inputs{rows, query.inputs[1], query.output_gradients[0]};
  if (query.inputs.size() == 3) inputs.push_back(query.inputs[2]);
  return inputs;
}

Value recomputed(std::string_view op, const GradientQuery& query, const Value& rows,
                 const Value& loss_gradient) {
  std::vector<Value> inputs(query.inputs.begin(), query.inputs.end());
  inputs[0] = rows;
  inputs[2] = loss_gradient;
  return apply(op, inputs, query.attributes);
}

Value by_loss_gradient(std::string_view op, const GradientQuery& query) {
  const Value& flow = query.inputs[2];
  const Value slope = recomputed(op, query, query.inputs[0], filled_like(flow, 1));
  std::vector<std::int64_t> axes{1};  // one for each sample, or one for all
  if (flow.shape().rank() == 0) axes = {0, 1};
  return apply("reduce_sum", {times(query.output_gradients[0], slope)}, {{"axes", axes}});
}

}  // namespace muster::graph
