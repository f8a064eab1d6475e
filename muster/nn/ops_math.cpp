#include "muster/nn/ops_math.h"

#include <cmath>
#include <utility>

namespace muster::nn::ops {

using graph::apply;
using graph::Attributes;

namespace {

Value cast_to(const Value& x, DType dtype) {
  return x.defined() && x.dtype() != dtype ? apply("cast", {x}, {{"dtype", dtype}}) : x;
}

Value with_floating(std::string_view op, const Value& x, const Attributes& attributes = {}) {
  const bool whole = x.defined() && !is_floating(x.dtype());
  return apply(op, {whole ? cast_to(x, DType::float32) : x}, attributes);
}

// `op` on both in the dtype that they meet in.
Value promoted(std::string_view op, const Value& a, const Value& b) {
  if (!a.defined() || !b.defined() || a.dtype() == b.dtype()) return apply(op, {a, b});
  const DType dtype = ops::promoted(a.dtype(), b.dtype());
  return apply(op, {cast_to(a, dtype), cast_to(b, dtype)});
}

template <class T>
Value scalar(DType dtype, T number) {
  const Tensor given = Tensor::scalar(number);
  if (dtype == dtype_of<T>) return given;
  Tensor made(dtype, {});
  kernels::cast(given.bytes(), dtype_of<T>, made.bytes(), dtype, 1);
  return made;
}

Attributes attributes_of(const ReduceOptions& options) {
  return {{"axes", options.axes}, {"keep_dims", options.keep_dims}};
}

// Truth values reduced as the numbers 0 and 1.
Value truth_over(std::string_view op, const Value& x, const ReduceOptions& options) {
  const Value numbers = cast_to(cast_to(x, DType::bool_), DType::int32);
  return cast_to(apply(op, {numbers}, attributes_of(options)), DType::bool_);
}

int width(DType dtype) { return static_cast<int>(size_bytes(dtype)); }
bool is_unsigned(DType dtype) { return dtype == DType::uint8 || dtype == DType::uint32; }

}  // namespace

DType promoted(DType a, DType b) {
  if (const auto dtype = graph::meeting_dtype(a, b)) return *dtype;
  if (a == b || b == DType::bool_) return a;
  if (a == DType::bool_) return b;
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  if (is_floating(a) || is_unsigned(a) == is_unsigned(b)) return width(a) >= width(b) ? a : b;
  const DType other = is_unsigned(a) ? b : a;            // the signed one
  const int needed = 2 * width(is_unsigned(a) ? a : b);  // bytes that hold the unsigned one with a sign
  if (width(other) >= needed) return other;
  return needed > 4 ? DType::int64 : DType::int32;
}

Value number_beside(const Value& like, double number) {
  if (!like.defined()) return like;
  return scalar(is_floating(like.dtype()) ? like.dtype() : DType::float32, number);
}

Value number_beside(const Value& like, std::int64_t number) {
  if (!like.defined()) return like;
  return scalar(like.dtype() == DType::bool_ ? DType::int64 : like.dtype(), number);
}

Value add(const Value& a, const Value& b) { return promoted("add", a, b); }
Value sub(const Value& a, const Value& b) { return promoted("sub", a, b); }
Value mul(const Value& a, const Value& b) { return promoted("mul", a, b); }
Value div(const Value& a, const Value& b) {
  const bool whole = a.defined() && b.defined() && !is_floating(a.dtype()) && !is_floating(b.dtype());
  return whole ? apply("div", {cast_to(a, DType::float32), cast_to(b, DType::float32)})
               : promoted("div", a, b);
}
Value floor_div(const Value& a, const Value& b) { return promoted("floor_div", a, b); }
Value mod(const Value& a, const Value& b) { return promoted("mod", a, b); }
Value pow(const Value& a, const Value& b) { return promoted("pow", a, b); }
Value maximum(const Value& a, const Value& b) { return promoted("maximum", a, b); }
Value minimum(const Value& a, const Value& b) { return promoted("minimum", a, b); }

Value equal(const Value& a, const Value& b) { return promoted("equal", a, b); }
Value not_equal(const Value& a, const Value& b) { return promoted("not_equal", a, b); }
Value less(const Value& a, const Value& b) { return promoted("less", a, b); }
Value less_equal(const Value& a, const Value& b) { return promoted("less_equal", a, b); }
Value greater(const Value& a, const Value& b) { return promoted("greater", a, b); }
Value greater_equal(const Value& a, const Value& b) { return promoted("greater_equal", a, b); }
Value logical_and(const Value& a, const Value& b) { return promoted("logical_and", a, b); }
Value logical_or(const Value& a, const Value& b) { return promoted("logical_or", a, b); }
Value logical_not(const Value& x) { return apply("logical_not", {x}); }
Value isnan(const Value& x) { return with_floating("isnan", x); }
Value isinf(const Value& x) { return with_floating("isinf", x); }
Value isfinite(const Value& x) { return with_floating("isfinite", x); }

Value neg(const Value& x) { return apply("neg", {x}); }
Value abs(const Value& x) { return apply("abs", {x}); }
Value sign(const Value& x) { return apply("sign", {x}); }
Value square(const Value& x) { return apply("square", {x}); }
Value reciprocal(const Value& x) { return with_floating("reciprocal", x); }
Value sqrt(const Value& x) { return with_floating("sqrt", x); }
Value rsqrt(const Value& x) { return with_floating("rsqrt", x); }
Value exp(const Value& x) { return with_floating("exp", x); }
Value expm1(const Value& x) { return with_floating("expm1", x); }
Value log(const Value& x) { return with_floating("log", x); }
Value log1p(const Value& x) { return with_floating("log1p", x); }
Value erf(const Value& x) { return with_floating("erf", x); }
Value sin(const Value& x) { return with_floating("sin", x); }
Value cos(const Value& x) { return with_floating("cos", x); }
Value floor(const Value& x) { return with_floating("floor", x); }
Value ceil(const Value& x) { return with_floating("ceil", x); }
Value round(const Value& x) { return with_floating("round", x); }

Value relu(const Value& x) { return apply("relu", {x}); }
Value relu6(const Value& x) { return apply("relu6", {x}); }
Value leaky_relu(const Value& x, double alpha) { return apply("leaky_relu", {x}, {{"alpha", alpha}}); }
Value elu(const Value& x, double alpha) { return apply("elu", {x}, {{"alpha", alpha}}); }
Value sigmoid(const Value& x) { return with_floating("sigmoid", x); }
Value tanh(const Value& x) { return with_floating("tanh", x); }
Value gelu(const Value& x, bool approximate) { return apply("gelu", {x}, {{"approximate", approximate}}); }
Value silu(const Value& x) { return with_floating("silu", x); }
Value softplus(const Value& x) { return with_floating("softplus", x); }

Value reduce_sum(const Value& x, const ReduceOptions& options) {
  const bool small = x.defined() && !is_floating(x.dtype()) && x.dtype() != DType::int32;
  return apply("reduce_sum", {small ? cast_to(x, DType::int64) : x}, attributes_of(options));
}
Value reduce_all(const Value& x, const ReduceOptions& options) {
  return truth_over("reduce_min", x, options);
}
Value reduce_any(const Value& x, const ReduceOptions& options) {
  return truth_over("reduce_max", x, options);
}
Value reduce_mean(const Value& x, const ReduceOptions& options) {
  return with_floating("reduce_mean", x, attributes_of(options));
}
Value reduce_max(const Value& x, const ReduceOptions& options) {
  return apply("reduce_max", {x}, attributes_of(options));
}
Value reduce_min(const Value& x, const ReduceOptions& options) {
  return apply("reduce_min", {x}, attributes_of(options));
}
Value reduce_prod(const Value& x, const ReduceOptions& options) {
  return apply("reduce_prod", {x}, attributes_of(options));
}
Value argmax(const Value& x, std::int64_t axis) { return apply("argmax", {x}, {{"axis", axis}}); }
Value argmin(const Value& x, std::int64_t axis) { return apply("argmin", {x}, {{"axis", axis}}); }
Value softmax(const Value& x, std::int64_t axis) { return with_floating("softmax", x, {{"axis", axis}}); }
Value log_softmax(const Value& x, std::int64_t axis) {
  return with_floating("log_softmax", x, {{"axis", axis}});
}

Value clip(const Value& x, const ClipOptions& options) {
  Attributes attributes;
  if (options.min) attributes.set("min", *options.min);
  if (options.max) attributes.set("max", *options.max);
  return apply("clip", {x}, attributes);
}

Value select(const Value& condition, const Value& a, const Value& b) {
  if (!a.defined() || !b.defined() || a.dtype() == b.dtype()) return apply("select", {condition, a, b});
  const DType dtype = promoted(a.dtype(), b.dtype());
  return apply("select", {condition, cast_to(a, dtype), cast_to(b, dtype)});
}

Value layer_norm(const Value& x, const Value& gamma, const Value& beta, const LayerNormOptions& options) {
  return apply("layer_norm", {x, gamma, beta},
               {{"begin_norm_axis", options.begin_norm_axis}, {"eps", options.eps}});
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

}  // namespace muster::nn::ops
