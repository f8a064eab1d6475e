// Private to graph: bringing a value of a divided graph from one layout to another.
#pragma once

#include <optional>

#include "muster/graph/layout.h"
#include "muster/graph/nodes.h"

namespace muster::graph {

// A value of the whole graph as this rank has it.
struct LocalValue {
  ValueId id = 0;
  TensorLayout layout;
  TensorLayout::Axes partial = {};  // each rank of these axes has a part, which `joins` makes whole
  Reduction joins = Reduction::sum;
};

// Adds to a graph the nodes that lie between layouts: slices, where a rank has what it needs; all_to_all,
// where a cut goes from one dimension to another; all_gather, where a cut ends; reduce_scatter and
// all_reduce, where parts become a whole. Each is a call of the ranks that differ on the axes concerned.
class Redistribution {
 public:
  Redistribution(Graph& graph, MeshPtr mesh, std::uint32_t rank)
      : graph_(graph), mesh_(std::move(mesh)), rank_(rank) {}

  // A new value of the graph.
  ValueId value(TensorType type);
  // Of the nodes that are made from here on.
  void set_behind_losses(bool behind) { is_behind_losses_ = behind; }
  // What ranks have parts of, joined: straight to the pieces of `layout` as far as its cuts follow those that
  // the value has, else the whole of what it is.
  LocalValue joined(LocalValue local, const TensorLayout& layout);
  LocalValue in_layout(LocalValue local, const TensorLayout& layout);
  // In memory of its own.
  ValueId copied(ValueId id);

 private:
  using Axes = TensorLayout::Axes;
  struct Move {
    std::size_t from, to;
    Axes axes;
  };

  ValueId node(std::string_view op, ValueId from, Attributes attributes, TensorType type);
  ValueId reshaped(ValueId id, std::vector<std::int64_t> sizes);
  ValueId transposed(ValueId id, const std::vector<std::int64_t>& perm);
  Attributes call(const Axes& axes) const;
  std::int64_t size_of(const Axes& axes) const;
  ValueId in_blocks(ValueId id, std::size_t dim, std::int64_t parts);
  ValueId out_of_blocks(ValueId id, std::size_t dim);
  std::optional<Move> possible_move(const LocalValue& local, const TensorLayout& layout) const;
  LocalValue moved(LocalValue local, const Move& move);
  LocalValue gathered(LocalValue local, std::size_t dim, const Axes& axes);
  LocalValue scattered(LocalValue local, std::size_t dim, const Axes& axes);
  LocalValue cut(LocalValue local, const TensorLayout& layout);

  Graph& graph_;
  MeshPtr mesh_;
  std::uint32_t rank_;
  bool is_behind_losses_ = false;
};

}  // namespace muster::graph
