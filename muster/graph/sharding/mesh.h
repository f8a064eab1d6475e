// Private to graph and train: dividing what a graph computes over a mesh of ranks. Every rank traces the
// whole graph and makes its part of it.
#pragma once

#include "muster/graph/layout.h"
#include "muster/graph/nodes.h"

namespace muster::graph {

// The axis of the mesh over which updates alone are divided (sharding/updates.h).
inline constexpr const char* zero_axis = "zero";
bool is_over_mesh(const TensorLayout& layout);

// The layout that the attributes of a `shard` say, of a tensor of this shape. An error names what does not
// fit, and what would.
Result<TensorLayout> layout_in(const Attributes& attributes, const Shape& shape);

// Whether a graph says how it is divided: by a `shard`, or by parameters that are divided over a mesh (and
// not for their updates alone).
bool is_sharded(const Graph& graph);

// Puts this rank's part of `graph` in its place. What follows from the `shard`s and from divided parameters
// goes on from op to op by the rules of their rows (Op::dimensions); between layouts that differ come slices,
// all_gather and all_reduce in the group of the ranks concerned. Ops without a rule get whole tensors. Inputs
// are whole on every rank, and so are the outputs. Of the updates of divided parameters each rank makes its
// piece.
Result<> divide_over_mesh(Graph& graph);

}  // namespace muster::graph
