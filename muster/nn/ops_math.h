// Functions of values that the op rows do not describe: several ops in one, or with random numbers. The
// others are made from the rows (op_functions.h).
#pragma once

#include <cstdint>
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

}  // namespace muster::nn::ops
