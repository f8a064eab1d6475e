// Manifest of a recovery point: what it contains (docs/formats/recovery-point.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/checkpoint/point.h"
#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

// The files of a point, in its folder.
inline constexpr std::string_view manifest_file = "manifest.json";
inline constexpr std::string_view tensors_file = "tensors.safetensors";
inline constexpr std::string_view sections_file = "sections.bin";

struct TensorRecord {
  std::string name = {};
  DType dtype = DType::float32;
  Shape shape = {};
  std::uint64_t hash = 0;  // of the elements

  std::uint64_t size_bytes() const {
    return static_cast<std::uint64_t>(shape.elements()) * muster::size_bytes(dtype);
  }
};

// Sections lie in their file one after the other.
struct SectionRecord {
  std::string name = {};
  std::uint64_t size_bytes = 0;
  std::uint64_t hash = 0;
};

struct Manifest {
  std::string job = {};  // 16 hexadecimal digits
  std::uint64_t world_size = 0;
  std::uint64_t rank = 0;
  PointId id = {};
  std::uint64_t header_bytes = 0;  // of the file of tensors, before the first element
  std::uint64_t header_hash = 0;
  std::vector<TensorRecord> tensors = {};  // in the order of the point
  std::vector<SectionRecord> sections = {};
  bool is_shared = false;  // as in Point
  std::string own = {};

  // Of the files that it speaks of.
  std::uint64_t tensors_bytes() const;
  std::uint64_t sections_bytes() const;
  // Equal for points whose tensors have the same names, dtypes and shapes in the same order.
  std::uint64_t signature() const;
};

bool is_job(std::string_view text);  // 16 hexadecimal digits, small letters

Result<std::string> encode_manifest(const Manifest& manifest);
// Errors (corrupt) begin with the file's name. Every byte counts: a text that was changed anywhere is
// refused.
Result<Manifest> decode_manifest(std::string_view text, const std::string& path);

// The manifest of the point in `folder`; the files that it speaks of are there with the sizes that it says.
Result<Manifest> read_manifest(const std::string& folder, const Storage& storage);

// "0123456789abcdef"
std::string hex(std::uint64_t value);

}  // namespace muster::checkpoint
