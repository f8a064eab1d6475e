// Functions of values that the op rows do not describe: several ops in one, or with random numbers. The
// others are made from the rows (op_functions.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "muster/graph/graph.h"

namespace muster::nn::ops {

using graph::promoted;
using graph::RunContext;
using graph::Value;

// A scalar constant of the dtype that a number takes beside `like`: like's own, but a fraction beside whole
// numbers is float32, and a whole number beside bool is int64.
Value number_beside(const Value& like, double number);
Value number_beside(const Value& like, std::int64_t number);

// Whether all elements over `axes` (all when empty), or any, are true (not 0), as bool.
Value reduce_all(const Value& x, const std::vector<std::int64_t>& axes = {}, bool keep_dims = false);
Value reduce_any(const Value& x, const std::vector<std::int64_t>& axes = {}, bool keep_dims = false);

// y, and the mask of the elements that stayed.
graph::Values dropout_and_mask(const Value& x, double keep_prob = 0.5, const RunContext& context = {});
// Elements stay with probability keep_prob. Outside a trace `context` says which random numbers decide.
Value dropout(const Value& x, double keep_prob = 0.5, const RunContext& context = {});

struct AttentionOptions {
  // Broadcasts to (samples, heads, queries, keys): bool, true where a query sees a key, or of the dtype of q
  // and added to the scaled products. Undefined: all keys are seen.
  Value mask = {};
  double dropout_p = 0;              // share of the weights that is dropped
  bool is_causal = false;            // query i sees keys 0 to i
  std::optional<double> scale = {};  // 1 / sqrt(depth) unless given
};
// softmax(scale q k^T + mask) v as one op, in memory that is linear in the number of keys: q (samples, heads,
// queries, depth), k (samples, key heads, keys, depth), v (samples, key heads, keys, value depth), heads a
// multiple of key heads; the result (samples, heads, queries, value depth). A query that the
// mask lets see no key (false, or minus infinity for all) gives zeros. Throws an Exception that names the
// shapes that do not fit. Vaswani et al., Attention is all you need, NeurIPS 2017; Dao et al.,
// FlashAttention, arXiv 2205.14135.
Value scaled_dot_product_attention(const Value& q, const Value& k, const Value& v,
                                   const AttentionOptions& options = {}, const RunContext& context = {});

}  // namespace muster::nn::ops
