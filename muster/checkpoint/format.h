// The bytes of a checkpoint (docs/formats/checkpoint.md).
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/tensor/tensor.h"

namespace muster::checkpoint {

struct Entry {
  std::string name;
  Tensor value;
};

// Of the elements; of tensors that another worker holds (Tensor::absence) nothing.
std::size_t size_bytes(std::span<const Entry> entries);

// An entry of more than this many bytes is written as several parts under one name.
inline constexpr std::size_t part_bytes_max = std::size_t{512} << 20;

// A file as pieces, one after the other. The pieces point into `heads` and into the tensors, which are not
// copied.
struct Pieces {
  std::deque<std::vector<std::byte>> heads = {};
  std::vector<std::span<const std::byte>> pieces = {};
};

Pieces encode_pieces(std::span<const Entry> entries, std::size_t part_bytes = part_bytes_max);
// The same in one piece.
std::vector<std::byte> encode(std::span<const Entry> entries, std::size_t part_bytes = part_bytes_max);

// In the order of the file. Every length is checked against the file's end; errors (corrupt) name `path`, the
// byte offset and what is wrong there. Entries that are no tensors (another program's strings) are left out.
Result<std::vector<Entry>> decode(std::span<const std::byte> file, const std::string& path);

}  // namespace muster::checkpoint
