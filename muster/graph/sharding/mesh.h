// Private to graph and train: dividing what a graph computes over a mesh of ranks. Every rank traces the
// whole graph and makes its part of it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "muster/graph/layout.h"
#include "muster/graph/nodes.h"

namespace muster::graph {

// The axis of the mesh over which updates alone are divided (sharding/updates.h).
inline constexpr const char* zero_axis = "zero";
bool is_over_mesh(const TensorLayout& layout);

// The layout that the attributes of a `shard` say, of a tensor of this shape. An error names what does not
// fit, and what would. Axes that cut one dimension come in the order of the mesh, but with `any_order`.
Result<TensorLayout> layout_in(const Attributes& attributes, const Shape& shape);

// The same the other way: the attributes "mesh" and "layout".
std::string mesh_text(const Mesh& mesh);
std::string layout_text(const TensorLayout& layout);

// A mesh, and which of its ranks this process is.
struct MeshPlace {
  MeshPtr mesh;
  std::uint32_t rank = 0;
};

// Over which mesh a graph is divided; nothing: over none. An error where it is divided over one in two ways.
Result<std::optional<MeshPlace>> mesh_of(const Graph& graph);

// How values are divided.
using Layouts = std::map<ValueId, TensorLayout>;

// Those of all values, as they follow from the `shard`s and the divided parameters of the whole graph.
Result<Layouts> layouts_over_mesh(Graph whole, const MeshPlace& place);

// Puts this rank's part of `graph` in its place. What follows from the `shard`s and from divided parameters
// goes on from op to op by the rules of their rows (Op::dimensions); between layouts that differ come slices,
// all_gather and all_reduce in the group of the ranks concerned. Ops without a rule get whole tensors. Inputs
// are whole on every rank, and so are the outputs. Of the updates of divided parameters each rank makes its
// piece. Of a stage of a placed network `transferred` are the layouts of what it sends and receives, in which
// the ranks that are at the same place of their stages' meshes hand it on.
Result<> divide_over_mesh(Graph& graph, const MeshPlace& place, const Layouts& transferred = {});

}  // namespace muster::graph
