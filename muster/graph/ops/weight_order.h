// Private to graph: the order in which the gradients of convolution weights travel.
//
// All ranks must put the same element at the same place, whatever processor each has and whatever its kernels
// prefer. So the order depends on the type alone; it is the one in which oneDNN makes these gradients on
// processors with AVX-512: those give and take them as they are, others reorder.
#pragma once

#include <cstddef>
#include <string_view>

#include "muster/graph/value.h"

namespace muster::graph {

// Axes (out, in, height, width); blocks of 16 in by 16 out channels lie together, out channels innermost.
inline constexpr std::string_view weight_order_name = "ABcd16b16a";

// Whether such a gradient travels in that order; others travel in row-major order.
bool travels_in_weight_order(const TensorType& type);

// From row-major order and back. The two must not overlap.
void to_weight_order(const TensorType& type, const std::byte* plain, std::byte* ordered);
void from_weight_order(const TensorType& type, const std::byte* ordered, std::byte* plain);

}  // namespace muster::graph
