// x[a, b, ...] as numpy means it, in a graph and outside, with gradient.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "muster/graph/graph.h"

namespace muster::nn {

// begin:end:step of one axis; ends may be open, negative ones count from the end.
struct Slice {
  std::optional<std::int64_t> begin = {};
  std::optional<std::int64_t> end = {};
  std::int64_t step = 1;
};
struct NewAxis {};
struct Ellipsis {};

// One entry between the brackets. A Value is an integer tensor (its shape takes the place of the axis;
// several broadcast) or a mask of bool (it stands for the places where it is true).
using Index = std::variant<std::int64_t, Slice, NewAxis, Ellipsis, graph::Value>;

// A copy of the elements, or a view of them when x is concrete and they lie in one piece. Errors name the
// axis, the index and the size. A mask must have its elements now: how many are true decides the shape, so a
// mask that is computed in the graph is an error. Source: numpy's indexing rules; where integers and integer
// tensors stand apart, the tensors' axes come first.
graph::Value index(const graph::Value& x, std::span<const Index> indices);

// x with `values` (cast to its dtype, and broadcast) in place of what index() would give; where several land
// on one element the last one stays. A mask that is computed in the graph takes values for all places, or
// one.
graph::Value with_elements(const graph::Value& x, std::span<const Index> indices, const graph::Value& values);

}  // namespace muster::nn
