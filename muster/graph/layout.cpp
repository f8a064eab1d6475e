#include "muster/graph/layout.h"

#include <algorithm>
#include <cstring>

namespace muster::graph {

std::uint32_t Mesh::size() const {
  std::uint32_t product = 1;
  for (const MeshAxis& axis : axes_) product *= axis.size;
  return product;
}

std::uint32_t Mesh::coordinate(std::uint32_t rank, std::size_t axis) const {
  for (std::size_t i = axes_.size() - 1; i > axis; --i) rank /= axes_[i].size;
  return rank % axes_[axis].size;
}

std::vector<std::uint32_t> Mesh::group_of(std::uint32_t rank, const std::vector<std::size_t>& axes) const {
  std::vector<std::uint32_t> members;
  for (std::uint32_t other = 0; other < size(); ++other) {
    bool is_member = true;
    for (std::size_t i = 0; i < axes_.size(); ++i)
      is_member =
          is_member && (std::ranges::count(axes, i) > 0 || coordinate(other, i) == coordinate(rank, i));
    if (is_member) members.push_back(other);
  }
  return members;
}

bool TensorLayout::is_whole() const {
  return std::ranges::all_of(dims, [](const Axes& axes) { return axes.empty(); });
}

std::int64_t TensorLayout::parts(std::size_t dim) const {
  std::int64_t product = 1;
  for (const std::size_t axis : dims[dim]) product *= mesh->axes()[axis].size;
  return product;
}

std::int64_t TensorLayout::index(std::size_t dim, std::uint32_t rank) const {
  std::int64_t index = 0;
  for (const std::size_t axis : dims[dim])
    index = index * mesh->axes()[axis].size + mesh->coordinate(rank, axis);
  return index;
}

Shape TensorLayout::piece_shape(const Shape& whole) const {
  Shape piece = whole;
  for (std::size_t dim = 0; dim < dims.size(); ++dim) piece[dim] /= parts(dim);
  return piece;
}

std::string to_string(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes())
    text += (text.empty() ? "" : ", ") + axis.name + "=" + std::to_string(axis.size);
  return text;
}

std::string to_string(const TensorLayout& layout) {
  std::string text;
  for (const TensorLayout::Axes& axes : layout.dims) {
    std::string names;
    for (const std::size_t axis : axes) names += (names.empty() ? "" : "+") + layout.mesh->axes()[axis].name;
    text += (text.empty() ? "" : ", ") + (names.empty() ? "-" : names);
  }
  return "(" + text + ")";
}

namespace {

// Calls copy(offset in the whole, offset in the piece, bytes) for each run of elements of a piece.
template <class Copy>
void for_each_run(const Shape& whole, std::size_t element_bytes, const TensorLayout& layout,
                  std::uint32_t rank, const Copy& copy) {
  const Shape piece = layout.piece_shape(whole);
  std::size_t inner = layout.dims.size();  // dimensions from here on are whole
  while (inner > 0 && layout.dims[inner - 1].empty()) --inner;
  std::size_t run = element_bytes;  // of the last dimension that is cut and all behind it
  for (std::size_t dim = inner == 0 ? 0 : inner - 1; dim < whole.rank(); ++dim)
    run *= static_cast<std::size_t>(piece[dim]);
  if (piece.elements() == 0) return;
  std::vector<std::int64_t> at(inner == 0 ? 0 : inner - 1, 0);
  for (std::size_t offset = 0; offset < static_cast<std::size_t>(piece.elements()) * element_bytes;
       offset += run) {
    std::int64_t element = 0;
    for (std::size_t dim = 0; dim < whole.rank(); ++dim) {
      const std::int64_t begin = dim < layout.dims.size() ? layout.index(dim, rank) * piece[dim] : 0;
      element = element * whole[dim] + begin + (dim < at.size() ? at[dim] : 0);
    }
    copy(static_cast<std::size_t>(element) * element_bytes, offset, run);
    for (std::size_t dim = at.size(); dim-- > 0;) {
      if (++at[dim] < piece[dim]) break;
      at[dim] = 0;
    }
  }
}

}  // namespace

Tensor piece_of(const Tensor& whole, const TensorLayout& layout, std::uint32_t rank) {
  Tensor piece(whole.dtype(), layout.piece_shape(whole.shape()));
  for_each_run(whole.shape(), size_bytes(whole.dtype()), layout, rank,
               [&](std::size_t from, std::size_t to, std::size_t bytes) {
                 std::memcpy(piece.bytes() + to, whole.bytes() + from, bytes);
               });
  return piece;
}

void put_piece(const Tensor& piece, const TensorLayout& layout, std::uint32_t rank, const Tensor& whole) {
  for_each_run(whole.shape(), size_bytes(whole.dtype()), layout, rank,
               [&](std::size_t to, std::size_t from, std::size_t bytes) {
                 std::memcpy(whole.bytes() + to, piece.bytes() + from, bytes);
               });
}

}  // namespace muster::graph
