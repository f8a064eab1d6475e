// Limits for the JSON in the files of this module. Private.
#pragma once

#include "muster/json/json.h"

namespace muster::checkpoint {

inline constexpr json::Limits json_limits{.depth = 8, .code = Code::corrupt};

}  // namespace muster::checkpoint
