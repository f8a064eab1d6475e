// Names that people may have misspelt.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace muster {

// Of `names`, the one that `name` is likely to mean: at most two letters inserted, deleted, replaced or
// swapped with a neighbour. Nothing when none is so near.
std::optional<std::string_view> nearest_name(std::string_view name, std::span<const std::string_view> names);

}  // namespace muster
