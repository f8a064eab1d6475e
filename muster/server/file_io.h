// File input and output at given places. Private to server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "muster/base/base.h"

namespace muster::server {

// How many bytes there were: fewer where the file ends.
Result<std::size_t> read_at(int file, std::uint64_t offset, std::span<std::byte> bytes,
                            const std::string& path);
Result<> write_at(int file, std::uint64_t offset, std::span<const std::byte> bytes, const std::string& path);
// Brings new names in the file's folder, and those that are gone, to the disk.
Result<> sync_folder_of(const std::string& path);
// What the file has is on the disk then.
Result<> sync_file(const std::string& path);

}  // namespace muster::server
