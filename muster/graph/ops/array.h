// Private to graph: the rows that move, pick and join elements, and what their rules share.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "muster/graph/ops/ops.h"

namespace muster::graph {

const Op& batch_matmul_op();
const Op& broadcast_to_op();
const Op& concat_op();
const Op& cumsum_op();
const Op& flat_index_op();
const Op& gather_op();
const Op& one_hot_op();
const Op& pad_op();
const Op& scatter_add_op();
const Op& slice_op();
const Op& split_op();
const Op& topk_op();
const Op& transpose_op();

using Sizes = std::vector<std::int64_t>;

// The list under `name`, empty when there is none.
Sizes sizes_of(const Attributes& attributes, std::string_view name);
// The axis of `shape` that attribute "axis" names; negative ones count from the end.
Result<std::size_t> axis_of(std::string_view op, const Attributes& attributes, const Shape& shape,
                            std::int64_t otherwise = 0);
// The product of sizes [first, last).
std::int64_t elements_between(const Shape& shape, std::size_t first, std::size_t last);
// Does `small` broadcast to `large`?
bool broadcasts_to(const Shape& small, const Shape& large);
// Undoes the broadcasting of `like` in `gradient`.
Value summed_like(const Value& gradient, const Value& like);

inline bool any(const Signature&) { return true; }
inline bool is_index(DType dtype) { return dtype == DType::int32 || dtype == DType::int64; }

}  // namespace muster::graph
