// Tensors whose pieces lie in several files, as one. Private to checkpoint.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/checkpoint/mesh_layout.h"
#include "muster/checkpoint/store.h"

namespace muster::checkpoint {

struct JoinedTensor {
  struct Piece {
    struct Copy {
      std::size_t file = 0;
      std::vector<ByteRange> ranges = {};
    };

    std::size_t file = 0;
    Box box = {};
    std::vector<ByteRange> ranges = {};
    std::vector<Copy> copies = {};  // in files that do not say their layout
  };

  std::string name = {};
  DType dtype = DType::float32;
  Shape shape = {};                       // of the whole
  std::vector<Piece> pieces = {};         // no two are alike, and together they are the whole
  std::string origin = {};                // the file that named it first
  std::optional<std::int64_t> step = {};  // of its pieces, as far as their files say it
};

class JoinedFiles {
 public:
  // Opens all. An error where pieces do not fit each other, are of several saves, or some are missing.
  static Result<JoinedFiles> open(std::span<const std::string> paths, const std::optional<MeshLayout>& from,
                                  const Storage& storage);

  const std::vector<JoinedTensor>& tensors() const { return tensors_; }
  // That the pieces are of; empty: their files do not say it.
  const std::string& training() const { return training_; }
  // Says in the log which tensors have other bits in a second file: either they are pieces without a
  // layout, or statistics of a worker's own. Reads all copies.
  Result<> warn_of_unlike_copies();
  // The elements of a part of a tensor, in row-major order.
  Result<> read(const JoinedTensor& tensor, const Box& part, std::span<std::byte> into);

 private:
  Result<> add(std::size_t file, std::uint32_t rank, const MeshLayout* layout,
               const std::map<std::string, Shape>* shapes);
  void note_save(const LayoutManifest& manifest);
  Result<> add(StoredTensor stored, Shape whole, Box box, std::size_t file);
  Result<> check_complete() const;
  Result<> copy(const JoinedTensor& tensor, const JoinedTensor::Piece& piece, const Box& part,
                const Box& wanted, std::span<std::byte> into);
  Result<bool> is_copy(const JoinedTensor::Piece& piece, const JoinedTensor::Piece::Copy& copy);
  Result<> read_bytes(std::size_t file, std::span<const ByteRange> ranges, std::uint64_t begin,
                      std::span<std::byte> into) const;

  std::vector<StoredFile> files_;
  std::vector<JoinedTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> index_;  // into tensors_, by name
  std::string training_;
  std::vector<std::byte> scratch_;
};

// Divides a box into boxes of at most `elements_max` elements, each of which lies in one run of it, in the
// order of the elements. Calls visit(box) until one fails.
template <class Visit>
Result<> for_each_block(const Box& box, std::int64_t elements_max, const Visit& visit) {
  std::size_t dim = 0;
  while (dim < box.size.size() && box.size[dim] == 1) ++dim;
  if (box.elements() <= elements_max || dim == box.size.size()) return visit(box);
  const std::int64_t inner = box.elements() / box.size[dim];
  const std::int64_t step = std::max<std::int64_t>(1, elements_max / inner);
  for (std::int64_t at = 0; at < box.size[dim]; at += step) {
    Box part = box;
    part.begin[dim] += at;
    part.size[dim] = std::min(step, box.size[dim] - at);
    MUSTER_TRY_VOID(for_each_block(part, elements_max, visit));
  }
  return {};
}

}  // namespace muster::checkpoint
