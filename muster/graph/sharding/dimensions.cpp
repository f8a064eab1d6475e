#include "muster/graph/sharding/dimensions.h"

#include <algorithm>
#include <numeric>

namespace muster::graph {
namespace {

using Labels = DimensionMap::Labels;
constexpr int whole = DimensionMap::whole;

std::size_t axis_of(const DimensionMap& map, std::string_view name, std::int64_t otherwise) {
  const std::int64_t axis = map.attributes.get(name, otherwise);
  const auto rank = static_cast<std::int64_t>(map.inputs[0].shape.rank());
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

// 0, 1, ...
Labels numbered(std::size_t rank) {
  Labels labels(rank);
  std::iota(labels.begin(), labels.end(), 0);
  return labels;
}

// Of a tensor that is aligned at the last dimensions with one of `shape`, whose labels are `like`.
Labels aligned(const Shape& own, const Shape& shape, const Labels& like) {
  Labels labels(own.rank(), whole);
  for (std::size_t back = 1; back <= std::min(own.rank(), shape.rank()); ++back)
    if (own[own.rank() - back] == shape[shape.rank() - back])
      labels[own.rank() - back] = like[like.size() - back];
  return labels;
}

}  // namespace

DimensionMap::DimensionMap(std::span<const TensorType> given, std::span<const TensorType> made,
                           const Attributes& settings)
    : inputs(given), outputs(made), attributes(settings) {
  for (const TensorType& type : inputs) of_inputs.emplace_back(type.shape.rank(), whole);
  for (const TensorType& type : outputs) of_outputs.emplace_back(type.shape.rank(), whole);
}

void DimensionMap::align() {
  const Shape& shape = outputs[0].shape;
  const Labels labels = numbered(shape.rank());
  for (std::size_t i = 0; i < inputs.size(); ++i) of_inputs[i] = aligned(inputs[i].shape, shape, labels);
  for (std::size_t i = 0; i < outputs.size(); ++i) of_outputs[i] = aligned(outputs[i].shape, shape, labels);
}

void DimensionMap::keep_whole(std::size_t first, std::size_t last) {
  const auto clear = [&](std::vector<Labels>& all) {
    for (Labels& labels : all)
      for (std::size_t dim = first; dim < std::min(last, labels.size()); ++dim) labels[dim] = whole;
  };
  clear(of_inputs);
  clear(of_outputs);
}

bool DimensionMap::can_cut(int label, std::int64_t parts) const {
  const auto all_fit = [&](std::span<const TensorType> types, const std::vector<Labels>& labels) {
    for (std::size_t i = 0; i < types.size(); ++i)
      for (std::size_t dim = 0; dim < labels[i].size(); ++dim)
        if (labels[i][dim] == label && types[i].shape[dim] % parts != 0) return false;
    return true;
  };
  return all_fit(inputs, of_inputs) && all_fit(outputs, of_outputs);
}

void elementwise(DimensionMap& map) { map.align(); }

namespace {

void keep_lines(DimensionMap& map, std::int64_t otherwise) {
  map.align();
  const std::size_t axis = axis_of(map, "axis", otherwise);
  map.keep_whole(axis, axis + 1);
}

}  // namespace

void along_axis(DimensionMap& map) { keep_lines(map, -1); }
void along_first_axis(DimensionMap& map) { keep_lines(map, 0); }

void along_first_axis_of_shape(DimensionMap& map) {
  keep_lines(map, 0);
  map.shape = "shape";
}

void without_axis_dimensions(DimensionMap& map) {
  const std::size_t axis = axis_of(map, "axis", -1);
  Labels kept = map.of_inputs[0] = numbered(map.inputs[0].shape.rank());
  map.of_inputs[0][axis] = whole;
  kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(axis));
  for (Labels& labels : map.of_outputs) labels = kept;
}

void matmul_dimensions(DimensionMap& map) {
  const auto matrix = [&](std::size_t input, bool transposed, int first, int second) {
    Labels& labels = map.of_inputs[input];
    labels = aligned(map.inputs[input].shape, map.outputs[0].shape, numbered(map.outputs[0].shape.rank()));
    labels[labels.size() - 2] = transposed ? second : first;
    labels[labels.size() - 1] = transposed ? first : second;
  };
  const auto rank = static_cast<int>(map.outputs[0].shape.rank());
  const int rows = rank - 2, columns = rank - 1, inner = rank;
  matrix(0, map.attributes.get("transpose_a", false), rows, inner);
  matrix(1, map.attributes.get("transpose_b", false), inner, columns);
  map.of_outputs[0] = numbered(static_cast<std::size_t>(rank));
}

void reduce_dimensions(DimensionMap& map) {
  const std::size_t rank = map.inputs[0].shape.rank();
  std::vector<bool> folds(rank, map.attributes.get("axes", std::vector<std::int64_t>{}).empty());
  for (const std::int64_t axis : map.attributes.get("axes", std::vector<std::int64_t>{}))
    folds[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis)] = true;
  map.of_inputs[0] = numbered(rank);
  Labels kept;
  for (std::size_t dim = 0; dim < rank; ++dim)
    if (!folds[dim])
      kept.push_back(static_cast<int>(dim));
    else if (map.attributes.get("keep_dims", false))
      kept.push_back(whole);
  map.of_outputs[0] = std::move(kept);
}

void reduce_mean_dimensions(DimensionMap& map) {
  reduce_dimensions(map);
  map.joins = Reduction::mean;
}
void reduce_max_dimensions(DimensionMap& map) {
  reduce_dimensions(map);
  map.joins = Reduction::max;
}
void reduce_min_dimensions(DimensionMap& map) {
  reduce_dimensions(map);
  map.joins = Reduction::min;
}

void sum_to_dimensions(DimensionMap& map) {
  map.of_inputs[0] = numbered(map.inputs[0].shape.rank());
  map.of_outputs[0] = aligned(map.outputs[0].shape, map.inputs[0].shape, map.of_inputs[0]);
  map.shape = "shape";
}

void broadcast_to_dimensions(DimensionMap& map) {
  map.align();
  map.shape = "shape";
}

// Dimensions are split and joined in groups of as many elements; of a group the first can be cut.
void reshape_dimensions(DimensionMap& map) {
  const Shape& from = map.inputs[0].shape;
  const Shape& to = map.outputs[0].shape;
  std::size_t i = 0, j = 0;
  int label = 0;
  while (i < from.rank() && j < to.rank()) {
    if (from[i] == 1 && to[j] != 1) {
      ++i;
    } else if (to[j] == 1 && from[i] != 1) {
      ++j;
    } else {
      map.of_inputs[0][i] = map.of_outputs[0][j] = label++;
      std::int64_t left = from[i++], right = to[j++];
      while (left != right) {
        if (left < right && i < from.rank())
          left *= from[i++];
        else if (right < left && j < to.rank())
          right *= to[j++];
        else
          return;
      }
    }
  }
  map.shape = "shape";
}

void transpose_dimensions(DimensionMap& map) {
  map.of_inputs[0] = numbered(map.inputs[0].shape.rank());
  const auto perm = map.attributes.get("perm", std::vector<std::int64_t>{});
  if (perm.size() != map.of_outputs[0].size()) return;
  for (std::size_t dim = 0; dim < perm.size(); ++dim) map.of_outputs[0][dim] = static_cast<int>(perm[dim]);
}

namespace {

// Of a table, the indices along one axis of it, and the rows that they name: those have the axes of the
// indices, behind the leading ones that both share, in the place of the table's axis.
void label_rows(const Attributes& attributes, Labels& table, Labels& indices, Labels& rows) {
  const auto shared = static_cast<std::size_t>(attributes.get("batch_dims", std::int64_t{0}));
  const std::int64_t given = attributes.get("axis", std::int64_t{0});
  const auto axis =
      static_cast<std::size_t>(given < 0 ? given + static_cast<std::int64_t>(table.size()) : given);
  rows = numbered(rows.size());
  for (std::size_t dim = 0; dim < table.size(); ++dim)
    if (dim != axis) table[dim] = static_cast<int>(dim < axis ? dim : dim - 1 + indices.size() - shared);
  for (std::size_t dim = 0; dim < indices.size(); ++dim)
    indices[dim] = static_cast<int>(dim < shared ? dim : axis + dim - shared);
}

}  // namespace

void gather_dimensions(DimensionMap& map) {
  label_rows(map.attributes, map.of_inputs[0], map.of_inputs[1], map.of_outputs[0]);
}

void scatter_add_dimensions(DimensionMap& map) {
  label_rows(map.attributes, map.of_outputs[0], map.of_inputs[0], map.of_inputs[1]);
  map.shape = "shape";
}

namespace {

// `x` has a label at each dimension before the normalised ones.
void label_rows_of(DimensionMap& map, const Shape& x) {
  const std::int64_t begin = map.attributes.get("begin_norm_axis", std::int64_t{-1});
  const auto count =
      static_cast<std::size_t>(begin < 0 ? begin + static_cast<std::int64_t>(x.rank()) : begin);
  const auto label = [&](const std::vector<TensorType>& types, std::vector<Labels>& all) {
    for (std::size_t i = 0; i < types.size(); ++i)
      if (types[i].shape.rank() >= count && types[i].shape.rank() > 0)
        for (std::size_t dim = 0; dim < count; ++dim)
          if (types[i].shape[dim] == x[dim]) all[i][dim] = static_cast<int>(dim);
  };
  label({map.inputs.begin(), map.inputs.end()}, map.of_inputs);
  label({map.outputs.begin(), map.outputs.end()}, map.of_outputs);
}

}  // namespace

// x, gamma, beta to y, mean, scale.
void norm_dimensions(DimensionMap& map) {
  label_rows_of(map, map.inputs[0].shape);
  for (std::size_t i = 1; i < map.of_inputs.size(); ++i)
    map.of_inputs[i].assign(map.inputs[i].shape.rank(), whole);
}

// dy, x, gamma, mean, scale to dx, dgamma, dbeta: the latter two are sums over the rows.
void norm_grad_dimensions(DimensionMap& map) {
  label_rows_of(map, map.inputs[1].shape);
  map.of_inputs[2].assign(map.inputs[2].shape.rank(), whole);
  for (std::size_t i = 1; i < map.of_outputs.size(); ++i)
    map.of_outputs[i].assign(map.outputs[i].shape.rank(), whole);
}

// x and gamma to y and the roots, which have size 1 where gamma's axes are.
void rms_norm_dimensions(DimensionMap& map) {
  const std::size_t rows = map.inputs[0].shape.rank() - map.inputs[1].shape.rank();
  for (Labels* labels : {&map.of_inputs[0], &map.of_outputs[0], &map.of_outputs[1]})
    for (std::size_t dim = 0; dim < rows; ++dim) (*labels)[dim] = static_cast<int>(dim);
}

// dy, x, gamma and the roots to dx and dgamma, which is a sum over rows.
void rms_norm_grad_dimensions(DimensionMap& map) {
  const std::size_t rows = map.inputs[1].shape.rank() - map.inputs[2].shape.rank();
  for (Labels* labels : {&map.of_inputs[0], &map.of_inputs[1], &map.of_inputs[3], &map.of_outputs[0]})
    for (std::size_t dim = 0; dim < rows; ++dim) (*labels)[dim] = static_cast<int>(dim);
}

namespace {

// `part` lies in `all` along each axis; where it is all of it, both have a label.
void label_full(DimensionMap& map, const Shape& part, const Shape& all) {
  using Sizes = std::vector<std::int64_t>;
  const Sizes strides = map.attributes.get("strides", Sizes{});
  for (std::size_t dim = 0; dim < all.rank(); ++dim)
    if (part[dim] == all[dim] && (strides.empty() || strides[dim] == 1))
      map.of_inputs[0][dim] = map.of_outputs[0][dim] = static_cast<int>(dim);
}

}  // namespace

void slice_dimensions(DimensionMap& map) {
  label_full(map, map.outputs[0].shape, map.inputs[0].shape);
  map.shape = "size";
}

void pad_dimensions(DimensionMap& map) {
  label_full(map, map.inputs[0].shape, map.outputs[0].shape);
  map.shape = "shape";
}

void one_hot_dimensions(DimensionMap& map) {
  const std::int64_t given = map.attributes.get("axis", std::int64_t{-1});
  Labels labels = map.of_inputs[0] = numbered(map.inputs[0].shape.rank());
  labels.insert(given < 0 ? labels.end() : labels.begin() + given, whole);
  map.of_outputs[0] = std::move(labels);
}

void dropout_dimensions(DimensionMap& map) {
  map.align();
  map.keep_whole(1, map.inputs[0].shape.rank());
  map.part = "part";
}

}  // namespace muster::graph
