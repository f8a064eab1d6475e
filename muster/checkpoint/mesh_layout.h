// Layout of a checkpoint over a mesh of ranks: which part of each tensor the file of each rank has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::checkpoint {

// A part of a tensor: for each dimension where it begins and how many there are.
struct Box {
  std::vector<std::int64_t> begin = {};
  std::vector<std::int64_t> size = {};

  static Box whole(const Shape& shape) { return {std::vector<std::int64_t>(shape.rank(), 0), shape.sizes()}; }
  std::int64_t elements() const { return Shape(size).elements(); }

  friend bool operator==(const Box&, const Box&) = default;
};
// What both have; nothing where they have nothing in common. Of one tensor.
std::optional<Box> intersection(const Box& a, const Box& b);

// Ranks as an array with named axes, of which the last varies fastest, and the axes that cut each dimension
// of tensors.
struct MeshLayout {
  struct Axis {
    std::string name = {};
    std::uint32_t size = 1;
  };
  using Cuts = std::vector<std::vector<std::string>>;  // by dimension; the outermost cut first
  struct Rule {
    std::string pattern = {};  // a name; * stands for any letters
    Cuts cuts = {};
  };

  std::vector<Axis> axes = {};
  std::vector<Rule> rules = {};  // the first that fits a name counts; none: the tensor is whole everywhere

  std::uint32_t world_size() const;
  const Rule* rule_of(std::string_view name) const;
  // Into how many parts a dimension is cut. The cuts are known to fit (check).
  std::int64_t parts(const Cuts& cuts, std::size_t dim) const;
  // What `rank` has of a tensor of this shape, which its cuts divide.
  Box box_of(const Cuts& cuts, const Shape& whole, std::uint32_t rank) const;

  // Axes that are there twice or not at all, sizes below 1. Errors begin with `name`.
  Result<> check(std::string_view name) const;
  // Whether the cuts fit a tensor of this shape: an error says what does not, and what would.
  Result<> check(std::string_view tensor, const Cuts& cuts, const Shape& whole) const;
};

// "data=2, model=2"
std::string to_string(const MeshLayout& layout);
// "(model, -)"
std::string to_string(const MeshLayout::Cuts& cuts);

// As a mesh file (docs/formats/mesh.md).
std::string mesh_file_text(const MeshLayout& layout);

// What the file of one rank says about itself, in its metadata.
struct LayoutManifest {
  MeshLayout layout = {};  // its rules are names of tensors
  std::uint32_t rank = 0;
  std::map<std::string, Shape> shapes = {};  // of the wholes of those that are cut
  // Which save it is of, as far as who wrote it knew: the training, and of those that are cut how many
  // updates they had.
  std::string training = {};
  std::map<std::string, std::int64_t> steps = {};
};
// "step 100 of training 01ab" of what is cut: equal where pieces fit each other; empty: not known.
std::string save_text(const LayoutManifest& manifest, const std::string& tensor);
inline constexpr std::string_view layout_metadata = "muster.layout";
Result<std::string> encode_layout(const LayoutManifest& manifest);
// Errors (corrupt) begin with `name`.
Result<LayoutManifest> decode_layout(std::string_view text, std::string_view name);

}  // namespace muster::checkpoint
