// Creation mark of a worker's folder: a small file (docs/formats/recovery-point.md). A folder without it may
// have replaced a lost one, so it does not prove that there was nothing before.
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
