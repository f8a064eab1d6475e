#include "muster/nn/ops_math.h"

#include "muster/nn/op_functions.h"

namespace muster::nn::ops {
namespace {

template <class T>
Value scalar(DType dtype, T number) {
  const Tensor given = Tensor::scalar(number);
  return dtype == dtype_of<T> ? given : given.cast(dtype);
}

// Truth values as the numbers 0 and 1.
Value truth(const Value& x) { return cast(cast(x, DType::bool_), DType::int32); }

}  // namespace

Value number_beside(const Value& like, double number) {
  if (!like.defined()) return like;
  return scalar(is_floating(like.dtype()) ? like.dtype() : DType::float32, number);
}

Value number_beside(const Value& like, std::int64_t number) {
  if (!like.defined()) return like;
  return scalar(like.dtype() == DType::bool_ ? DType::int64 : like.dtype(), number);
}

Value reduce_all(const Value& x, const std::vector<std::int64_t>& axes, bool keep_dims) {
  return cast(reduce_min(truth(x), axes, keep_dims), DType::bool_);
}

Value reduce_any(const Value& x, const std::vector<std::int64_t>& axes, bool keep_dims) {
  return cast(reduce_max(truth(x), axes, keep_dims), DType::bool_);
}

graph::Values dropout_and_mask(const Value& x, double keep_prob, const RunContext& context) {
  return graph::apply_all("dropout", {&x, 1},
                          {{"keep_prob", keep_prob},
                           {"stream", graph::next_random_stream()},
                           {"part", graph::current_micro_batch()}},
                          context);
}
Value dropout(const Value& x, double keep_prob, const RunContext& context) {
  return dropout_and_mask(x, keep_prob, context)[0];
}

Value scaled_dot_product_attention(const Value& q, const Value& k, const Value& v,
                                   const AttentionOptions& options, const RunContext& context) {
  graph::Attributes attributes{{"is_causal", options.is_causal}};
  if (options.scale) attributes.set("scale", *options.scale);
  if (options.dropout_p != 0) {
    attributes.set("keep_prob", 1 - options.dropout_p);
    attributes.set("stream", graph::next_random_stream());
    attributes.set("part", graph::current_micro_batch());
  }
  std::vector<Value> inputs = {q, k, v};
  if (options.mask.defined()) {
    inputs.push_back(options.mask);
    if (options.mask.dtype() != DType::bool_) attributes.set("blind_is_zero", true);
  }
  return graph::apply("scaled_dot_product_attention", inputs, attributes, context);
}

}  // namespace muster::nn::ops
