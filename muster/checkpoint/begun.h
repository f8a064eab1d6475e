// Since when a worker's folder has been there: a small file (docs/formats/recovery-point.md). A folder
// without it may have come in the place of a lost one, and so nobody says of it that nothing was there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

// The call that all began when it was written. Nothing where there is no such file, or none that is whole.
std::optional<std::uint64_t> read_begun(const std::string& path, const Storage& storage);
Result<> write_begun(const std::string& path, std::uint64_t call, Storage& storage);

}  // namespace muster::checkpoint
