// Private: IDX files, the format of MNIST (docs/formats/idx.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"

namespace muster::data {

// The file's sizes and where its elements begin. Every byte of the file is accounted for: the elements end
// where the file does.
struct IdxHeader {
  std::vector<std::uint32_t> sizes;
  std::size_t data_offset = 0;
};

// Reads the header of unsigned bytes with `rank` axes. Errors name `path`, the byte offset, and what belongs
// there.
Result<IdxHeader> read_idx_header(std::span<const std::byte> file, std::size_t rank, const std::string& path);

}  // namespace muster::data
