// JSON that people wrote, within limits: files of settings, reports of other hosts. Private to `launch`.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "muster/base/base.h"

namespace muster::launch {

inline constexpr std::size_t json_depth_max = 16;

// The value, or what is wrong and at which line and column; `name` begins each error. The time that it takes
// grows with the text's length alone. A name that one object has twice is an error: which was meant nobody
// knows.
Result<nlohmann::json> read_json(std::string_view text, std::string_view name);

}  // namespace muster::launch
