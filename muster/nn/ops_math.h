// Arithmetic, comparisons, reductions and activations as functions of values. Two operands broadcast as
// numpy's do and meet in one dtype (promoted); functions that need floating numbers take whole ones as
// float32. Shapes, errors and sources of each stand in the row of its name (graph/ops).
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "muster/graph/graph.h"

namespace muster::nn::ops {

using graph::RunContext;
using graph::Value;

// The dtype that tensors of these two meet in: floating wins over whole, whole over bool, the wider over the
// narrower; unsigned meets signed in a signed one that holds both (int64 for uint32).
DType promoted(DType a, DType b);

// A scalar constant of the dtype that a number takes beside `like`: like's own, but a fraction beside whole
// numbers is float32, and a whole number beside bool is int64.
Value number_beside(const Value& like, double number);
Value number_beside(const Value& like, std::int64_t number);

Value add(const Value& a, const Value& b);
Value sub(const Value& a, const Value& b);
Value mul(const Value& a, const Value& b);
// Whole numbers divide as float32 does.
Value div(const Value& a, const Value& b);
Value floor_div(const Value& a, const Value& b);
// The rest of floor_div: its sign is that of b.
Value mod(const Value& a, const Value& b);
Value pow(const Value& a, const Value& b);
Value maximum(const Value& a, const Value& b);
Value minimum(const Value& a, const Value& b);

// These give bool.
Value equal(const Value& a, const Value& b);
Value not_equal(const Value& a, const Value& b);
Value less(const Value& a, const Value& b);
Value less_equal(const Value& a, const Value& b);
Value greater(const Value& a, const Value& b);
Value greater_equal(const Value& a, const Value& b);
Value logical_and(const Value& a, const Value& b);
Value logical_or(const Value& a, const Value& b);
Value logical_not(const Value& x);
Value isnan(const Value& x);
Value isinf(const Value& x);
Value isfinite(const Value& x);

Value neg(const Value& x);
Value abs(const Value& x);
Value sign(const Value& x);
Value square(const Value& x);
Value reciprocal(const Value& x);
Value sqrt(const Value& x);
Value rsqrt(const Value& x);
Value exp(const Value& x);
Value expm1(const Value& x);
Value log(const Value& x);
Value log1p(const Value& x);
Value erf(const Value& x);
Value sin(const Value& x);
Value cos(const Value& x);
Value floor(const Value& x);
Value ceil(const Value& x);
Value round(const Value& x);

Value relu(const Value& x);
Value relu6(const Value& x);
Value leaky_relu(const Value& x, double alpha = 0.2);
Value elu(const Value& x, double alpha = 1.0);
Value sigmoid(const Value& x);
Value tanh(const Value& x);
Value gelu(const Value& x, bool approximate = false);
Value silu(const Value& x);
Value softplus(const Value& x);

struct ReduceOptions {
  std::vector<std::int64_t> axes = {};  // all when empty; negative ones count from the end
  bool keep_dims = false;
};
// Truth values and small integers are counted as int64.
Value reduce_sum(const Value& x, const ReduceOptions& options = {});
Value reduce_mean(const Value& x, const ReduceOptions& options = {});
Value reduce_max(const Value& x, const ReduceOptions& options = {});
Value reduce_min(const Value& x, const ReduceOptions& options = {});
Value reduce_prod(const Value& x, const ReduceOptions& options = {});
// Whether all elements, or any, are true (not 0), as bool.
Value reduce_all(const Value& x, const ReduceOptions& options = {});
Value reduce_any(const Value& x, const ReduceOptions& options = {});
// The index of the extreme along an axis, int32.
Value argmax(const Value& x, std::int64_t axis = -1);
Value argmin(const Value& x, std::int64_t axis = -1);
Value softmax(const Value& x, std::int64_t axis = -1);
Value log_softmax(const Value& x, std::int64_t axis = -1);

struct ClipOptions {
  std::optional<double> min = {};
  std::optional<double> max = {};
};
Value clip(const Value& x, const ClipOptions& options);
// a where condition, else b.
Value select(const Value& condition, const Value& a, const Value& b);

struct LayerNormOptions {
  std::int64_t begin_norm_axis = -1;
  double eps = 1e-5;
};
Value layer_norm(const Value& x, const Value& gamma, const Value& beta, const LayerNormOptions& options = {});
// y, and the mask of the elements that stayed.
graph::Values dropout_and_mask(const Value& x, double keep_prob = 0.5, const RunContext& context = {});
// Elements stay with probability keep_prob. Outside a trace `context` says which random numbers decide.
Value dropout(const Value& x, double keep_prob = 0.5, const RunContext& context = {});

}  // namespace muster::nn::ops
