// Layouts: how a tensor is divided over the ranks of a mesh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/tensor/tensor.h"

namespace muster::graph {

struct MeshAxis {
  std::string name;
  std::uint32_t size = 1;

  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

// The name of an axis that cuts no tensor: along it lie the stages of a placed network, each of which
// computes on a mesh of its own. It is the last of its mesh.
inline constexpr const char* stages_axis = "stages";

// Ranks as an array with named axes, of which the last varies fastest: of ("data", 2), ("model", 3) rank 4 is
// at data 1, model 1.
class Mesh {
 public:
  explicit Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {}

  const std::vector<MeshAxis>& axes() const { return axes_; }
  std::uint32_t size() const;
  std::uint32_t stages() const { return axes_.back().name == stages_axis ? axes_.back().size : 1; }
  // How many axes there are, from the first, that may cut a tensor.
  std::size_t cutting_axes() const { return axes_.size() - (axes_.back().name == stages_axis ? 1 : 0); }
  // Where `rank` is on one axis.
  std::uint32_t coordinate(std::uint32_t rank, std::size_t axis) const;
  // The ranks that differ from `rank` on these axes alone, in their order.
  std::vector<std::uint32_t> group_of(std::uint32_t rank, const std::vector<std::size_t>& axes) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::vector<MeshAxis> axes_;
};
using MeshPtr = std::shared_ptr<const Mesh>;

struct TensorLayout {
  using Axes = std::vector<std::size_t>;  // of the mesh, the outermost cut first

  MeshPtr mesh;
  std::vector<Axes> dims;  // what cuts each dimension into equal parts; empty: nothing

  bool is_whole() const;
  std::int64_t parts(std::size_t dim) const;
  // Which of the parts `rank` has.
  std::int64_t index(std::size_t dim, std::uint32_t rank) const;
  // Each dimension divided by its parts, of which it is a multiple.
  Shape piece_shape(const Shape& whole) const;
};

// "(data, -, model)"
std::string to_string(const TensorLayout& layout);
// "data=2, model=4"
std::string to_string(const Mesh& mesh);

// How the ops of a graph are divided over a mesh: those that read something divided, in program order, alike
// ones together.
struct DividedOps {
  struct Entry {
    std::string_view op;
    std::string layouts;  // "(data, -) (-, model) to (data, model)"; empty: every rank computes all of it
    std::size_t count = 0;
  };
  std::string mesh;
  std::vector<Entry> entries = {};
  MeshPtr axes = {};
};

// What `rank` has of `whole`, copied.
Tensor piece_of(const Tensor& whole, const TensorLayout& layout, std::uint32_t rank);
// Writes what `rank` has to its place in `whole`.
void put_piece(const Tensor& piece, const TensorLayout& layout, std::uint32_t rank, const Tensor& whole);

}  // namespace muster::graph
