#include "muster/graph/sharding/redistribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::graph {
namespace {

using Axes = TensorLayout::Axes;
using Lengths = std::vector<std::int64_t>;

// What `have` has behind the cuts that both begin with.
Axes surplus(const Axes& have, const Axes& want) {
  return {std::ranges::mismatch(have, want).in1, have.end()};
}

// What `want` adds to `have`; nothing where it does not begin with it.
Axes missing(const Axes& have, const Axes& want) {
  if (!surplus(have, want).empty()) return {};
  return {want.begin() + static_cast<std::ptrdiff_t>(have.size()), want.end()};
}

bool begins_with(const Axes& axes, const Axes& first) {
  return first.size() <= axes.size() && std::equal(first.begin(), first.end(), axes.begin());
}

}  // namespace

ValueId Redistribution::value(TensorType type) {
  graph_.values.push_back(std::move(type));
  return static_cast<ValueId>(graph_.values.size() - 1);
}

ValueId Redistribution::node(std::string_view op, ValueId from, Attributes attributes, TensorType type) {
  const ValueId made = value(std::move(type));
  graph_.nodes.push_back({.op = &required_op(op),
                          .inputs = {from},
                          .outputs = {made},
                          .attributes = std::move(attributes),
                          .is_behind_losses = is_behind_losses_});
  return made;
}

ValueId Redistribution::reshaped(ValueId id, Lengths sizes) {
  const TensorType type = graph_.values[id];
  return node("reshape", id, {{"shape", sizes}}, {type.dtype, Shape(std::move(sizes))});
}

ValueId Redistribution::transposed(ValueId id, const Lengths& perm) {
  const TensorType type = graph_.values[id];
  Lengths sizes;
  for (const std::int64_t from : perm) sizes.push_back(type.shape[static_cast<std::size_t>(from)]);
  return node("transpose", id, {{"perm", perm}}, {type.dtype, Shape(std::move(sizes))});
}

// In the group of the ranks that differ on these axes.
Attributes Redistribution::call(const Axes& axes) const {
  const std::vector<std::uint32_t> ranks = mesh_->group_of(rank_, axes);
  Attributes attributes{{"ranks", static_cast<std::int64_t>(ranks.size())}};
  if (ranks.size() == mesh_->size()) return attributes;
  std::string name = "mesh";
  for (const std::uint32_t rank : ranks) name += fmt::format(" {}", rank);
  attributes.set("group", std::move(name));
  return attributes;
}

std::int64_t Redistribution::size_of(const Axes& axes) const {
  std::int64_t product = 1;
  for (const std::size_t axis : axes) product *= mesh_->axes()[axis].size;
  return product;
}

// (s0, ..., sd, ...) to (parts, s0, ..., sd / parts, ...).
ValueId Redistribution::in_blocks(ValueId id, std::size_t dim, std::int64_t parts) {
  Lengths sizes = graph_.values[id].shape.sizes();
  sizes[dim] /= parts;
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), parts);
  id = reshaped(id, std::move(sizes));
  if (dim == 0) return id;
  Lengths perm{static_cast<std::int64_t>(dim)};
  for (std::size_t i = 0; i < graph_.values[id].shape.rank(); ++i)
    if (i != dim) perm.push_back(static_cast<std::int64_t>(i));
  return transposed(id, perm);
}

// (parts, s0, ..., sd, ...) to (s0, ..., parts sd, ...).
ValueId Redistribution::out_of_blocks(ValueId id, std::size_t dim) {
  const std::size_t rank = graph_.values[id].shape.rank();
  if (dim > 0) {
    Lengths perm;
    for (std::size_t i = 1; i < rank; ++i) {
      if (i == dim + 1) perm.push_back(0);
      perm.push_back(static_cast<std::int64_t>(i));
    }
    id = transposed(id, perm);
  }
  Lengths sizes = graph_.values[id].shape.sizes();
  sizes[dim + 1] *= sizes[dim];
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  return reshaped(id, std::move(sizes));
}

LocalValue Redistribution::joined(LocalValue local, const TensorLayout& layout) {
  std::ranges::sort(local.partial);
  for (std::size_t dim = 0; dim < layout.dims.size(); ++dim) {
    Axes axes = missing(local.layout.dims[dim], layout.dims[dim]);
    const auto is_partial = [&](std::size_t axis) { return std::ranges::count(local.partial, axis) > 0; };
    axes.erase(std::ranges::find_if_not(axes, is_partial), axes.end());
    if (!axes.empty()) local = scattered(std::move(local), dim, axes);
  }
  if (local.partial.empty()) return local;
  Attributes attributes = call(std::exchange(local.partial, {}));
  attributes.set("reduction", std::string(to_string(local.joins)));
  local.id = node("all_reduce", local.id, std::move(attributes), graph_.values[local.id]);
  return local;
}

LocalValue Redistribution::scattered(LocalValue local, std::size_t dim, const Axes& axes) {
  const std::int64_t parts = size_of(axes);
  Lengths sizes = graph_.values[local.id].shape.sizes();
  sizes[dim] /= parts;
  Attributes attributes = call(axes);
  attributes.set("reduction", std::string(to_string(local.joins)));
  const ValueId blocks = in_blocks(local.id, dim, parts);
  TensorType type = graph_.values[blocks];
  type.shape[0] = 1;
  local.id =
      reshaped(node("reduce_scatter", blocks, std::move(attributes), std::move(type)), std::move(sizes));
  std::erase_if(local.partial, [&](std::size_t axis) { return std::ranges::count(axes, axis) > 0; });
  local.layout.dims[dim].insert(local.layout.dims[dim].end(), axes.begin(), axes.end());
  return local;
}

// Dimension `dim`, cut last by `axes`, without these.
LocalValue Redistribution::gathered(LocalValue local, std::size_t dim, const Axes& axes) {
  TensorType type = graph_.values[local.id];
  Lengths blocks = type.shape.sizes();
  blocks.insert(blocks.begin(), size_of(axes));
  type.shape[0] *= size_of(axes);
  const ValueId all = node("all_gather", local.id, call(axes), type);
  local.id = dim == 0 ? all : out_of_blocks(reshaped(all, std::move(blocks)), dim);
  local.layout.dims[dim].resize(local.layout.dims[dim].size() - axes.size());
  return local;
}

// The last cuts of one dimension that another one is to have next; as many of them as go.
std::optional<Redistribution::Move> Redistribution::possible_move(const LocalValue& local,
                                                                  const TensorLayout& layout) const {
  const std::vector<Axes>& have = local.layout.dims;
  for (std::size_t from = 0; from < have.size(); ++from)
    for (Axes axes = surplus(have[from], layout.dims[from]); !axes.empty(); axes.erase(axes.begin()))
      for (std::size_t to = 0; to < have.size(); ++to)
        if (to != from && begins_with(missing(have[to], layout.dims[to]), axes)) return Move{from, to, axes};
  return std::nullopt;
}

LocalValue Redistribution::moved(LocalValue local, const Move& move) {
  const ValueId sent = in_blocks(local.id, move.to, size_of(move.axes));
  const TensorType type = graph_.values[sent];
  local.id = out_of_blocks(node("all_to_all", sent, call(move.axes), type), move.from);
  std::vector<Axes>& dims = local.layout.dims;
  dims[move.from].resize(dims[move.from].size() - move.axes.size());
  dims[move.to].insert(dims[move.to].end(), move.axes.begin(), move.axes.end());
  return local;
}

// Cut further, to `layout`, of which it has the outer cuts already.
LocalValue Redistribution::cut(LocalValue local, const TensorLayout& layout) {
  const TensorType type = graph_.values[local.id];
  Lengths begin(type.shape.rank(), 0);
  Shape size = type.shape;
  for (std::size_t dim = 0; dim < begin.size(); ++dim) {
    const TensorLayout inner{.mesh = mesh_, .dims = {missing(local.layout.dims[dim], layout.dims[dim])}};
    size[dim] /= inner.parts(0);
    begin[dim] = inner.index(0, rank_) * size[dim];
  }
  local.layout = layout;
  if (size == type.shape) return local;
  local.id = node("slice", local.id,
                  {{"begin", begin}, {"size", size.sizes()}, {"strides", Lengths(begin.size(), 1)}},
                  {type.dtype, size});
  return local;
}

ValueId Redistribution::copied(ValueId id) {
  const TensorType type = graph_.values[id];
  return node("slice", id,
              {{"begin", Lengths(type.shape.rank(), 0)},
               {"size", type.shape.sizes()},
               {"strides", Lengths(type.shape.rank(), 1)}},
              type);
}

LocalValue Redistribution::in_layout(LocalValue local, const TensorLayout& layout) {
  local = joined(std::move(local), layout);
  while (true) {
    if (const auto move = possible_move(local, layout)) {
      local = moved(std::move(local), *move);
      continue;
    }
    std::size_t dim = 0;
    while (dim < layout.dims.size() && surplus(local.layout.dims[dim], layout.dims[dim]).empty()) ++dim;
    if (dim == layout.dims.size()) return cut(std::move(local), layout);
    const Axes axes = surplus(local.layout.dims[dim], layout.dims[dim]);
    local = gathered(std::move(local), dim, axes);
  }
}

}  // namespace muster::graph
