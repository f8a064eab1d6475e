// The bytes of a checkpoint (docs/formats/checkpoint.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/checkpoint/storage.h"
#include "muster/tensor/tensor.h"

namespace muster::checkpoint {

struct Entry {
  std::string name;
  Tensor value;
};

// Behind the name of a parameter: an entry that says where its rows are, which parameter servers have written
// into files of their own (docs/formats/row-files.md): uint8 (n,), a text.
inline constexpr std::string_view rows_suffix = ".rows";
bool says_where_rows_are(std::string_view name, DType dtype, const Shape& shape);
// The parameter of such an entry.
inline std::string parameter_of_rows(std::string_view name) {
  return std::string(name.substr(0, name.size() - rows_suffix.size()));
}

// Of the elements; of tensors that another worker holds (Tensor::absence) nothing.
std::size_t size_bytes(std::span<const Entry> entries);

// An entry of more than this many bytes is written as several parts under one name.
inline constexpr std::size_t part_bytes_max = std::size_t{512} << 20;

// Where bytes lie in a file.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

// A tensor of a file, unread: its elements are those of the ranges, one after the other.
struct StoredTensor {
  std::string name = {};
  DType dtype = DType::float32;
  Shape shape = {};
  std::vector<ByteRange> ranges = {};
};

// A part of a tensor in a file: the head, then `content_bytes` of elements.
struct FilePart {
  std::vector<std::byte> head = {};
  std::uint64_t content_bytes = 0;
};
// At least one, also of a tensor without elements.
std::vector<FilePart> parts_of(const std::string& name, DType dtype, const Shape& shape,
                               std::size_t part_bytes = part_bytes_max);

// A file as pieces, one after the other. The pieces point into `heads` and into the tensors, which are not
// copied.
struct Pieces {
  std::deque<std::vector<std::byte>> heads = {};
  std::vector<std::span<const std::byte>> pieces = {};
};

Pieces encode_pieces(std::span<const Entry> entries, std::size_t part_bytes = part_bytes_max);
// The layout of pieces as an entry of a file: a text, as MindSpore writes texts, which it and older readers
// of Muster take for one.
std::vector<std::byte> layout_entry(std::string_view layout);
// The same in one piece.
std::vector<std::byte> encode(std::span<const Entry> entries, std::size_t part_bytes = part_bytes_max);

// The tensors in the order of the file, of which no more than the heads is read. Every length is checked
// against the file's end; errors (corrupt) name `path`, the byte offset and what is wrong there. Entries that
// are no tensors (another program's strings) are left out; of texts that are named as the layout of pieces is
// (mesh_layout.h), the last goes to `layout`. A checksum behind the entries, as MindSpore's crc_check writes
// it, is passed over.
Result<std::vector<StoredTensor>> index(const InputFile& file, const std::string& path,
                                        std::string* layout = nullptr);
// All of its elements.
Result<Tensor> read_tensor(const InputFile& file, const StoredTensor& stored);
// Both, of a file in memory.
Result<std::vector<Entry>> decode(std::span<const std::byte> file, const std::string& path);

}  // namespace muster::checkpoint
