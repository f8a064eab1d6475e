// Mesh file: the layout of a checkpoint over ranks, as people write it (docs/formats/mesh.md).
#pragma once

#include <string>
#include <string_view>

#include "muster/checkpoint/mesh_layout.h"

namespace muster::launch {

inline constexpr std::size_t mesh_file_bytes_max = std::size_t{4} << 20;

// Errors name the file, the line and what would do.
Result<checkpoint::MeshLayout> parse_mesh_file(std::string_view text, std::string_view name);
Result<checkpoint::MeshLayout> read_mesh_file(const std::string& path, const Files& files = real_files());

}  // namespace muster::launch
