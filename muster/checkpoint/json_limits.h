// What the JSON in the files of this room may cost whoever reads it. Private.
#pragma once

#include "muster/json/json.h"

namespace muster::checkpoint {

inline constexpr json::Limits json_limits{.depth = 8, .code = Code::corrupt};

}  // namespace muster::checkpoint
