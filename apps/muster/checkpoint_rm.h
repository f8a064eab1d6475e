// muster checkpoint rm: throws recovery points away.
#pragma once

#include <cstdint>
#include <string>

namespace muster::app {

// Shows what it is about to remove, and asks unless `is_confirmed`. Returns the exit code.
int remove_points(const std::string& path, bool is_confirmed);

// "12.3 MB".
std::string size_text(std::uint64_t bytes);

}  // namespace muster::app
