// Preset that a script needs, guessed where that is plain.
#pragma once

#include <optional>
#include <string_view>

#include "muster/launch/settings/job_settings.h"

namespace muster::launch {

inline constexpr std::size_t guess_bytes_max = 256 << 10;  // of a script are looked at

// From what the Python script imports and which variables are set; `name` of the script stands in the origin:
// "guessed: train.py imports torch". Nothing where nothing, or several things, speak for themselves.
std::optional<Setting<std::string>> guess_preset(std::string_view name, std::string_view text,
                                                 const Environment& environment);

}  // namespace muster::launch
