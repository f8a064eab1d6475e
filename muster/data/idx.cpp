#include "muster/data/idx.h"

#include <fmt/format.h>

namespace muster::data {
namespace {

constexpr std::size_t word_bytes = 4;
constexpr std::uint32_t unsigned_byte = 0x08;  // the element type in the magic number

std::uint32_t big_endian(std::span<const std::byte> file, std::size_t offset) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < word_bytes; ++i)
    word = word << 8 | std::to_integer<std::uint32_t>(file[offset + i]);
  return word;
}

}  // namespace

Result<IdxHeader> read_idx_header(std::span<const std::byte> file, std::size_t rank,
                                  const std::string& path) {
  IdxHeader header;
  header.data_offset = word_bytes * (1 + rank);
  if (file.size() < header.data_offset)
    return fail(Code::corrupt,
                fmt::format("'{}' is truncated: it ends at byte {}, inside the header of {} bytes", path,
                            file.size(), header.data_offset));
  const std::uint32_t magic = big_endian(file, 0);
  const std::uint32_t magic_expected = unsigned_byte << 8 | static_cast<std::uint32_t>(rank);
  if (magic != magic_expected)
    return fail(
        Code::corrupt,
        fmt::format("'{}' is no IDX file of unsigned bytes with {} {}: byte 0 holds {:#010x} where {:#010x} "
                    "was expected",
                    path, rank, rank == 1 ? "axis" : "axes", magic, magic_expected));
  std::uint64_t elements = 1;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    header.sizes.push_back(big_endian(file, word_bytes * (1 + axis)));
    // Sizes beyond the file cannot be meant, and would overflow the product.
    if (header.sizes.back() != 0 && elements > file.size() / header.sizes.back())
      elements = file.size() + 1;
    else
      elements *= header.sizes.back();
  }
  const std::size_t held = file.size() - header.data_offset;
  if (elements > held)
    return fail(
        Code::corrupt,
        fmt::format("'{}' is truncated: it ends at byte {}, but its header promises {} elements of one byte "
                    "from byte {} on",
                    path, file.size(), fmt::join(header.sizes, " x "), header.data_offset));
  if (elements < held)
    return fail(
        Code::corrupt,
        fmt::format(
            "'{}' is longer than its header says: {} elements of one byte end at byte {}, the file at "
            "byte {}",
            path, fmt::join(header.sizes, " x "), header.data_offset + elements, file.size()));
  return header;
}

}  // namespace muster::data
