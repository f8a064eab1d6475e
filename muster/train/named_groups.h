// Private to train: groups of some workers, by name, and messages between workers (job.h has them for
// others).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "muster/base/base.h"

namespace muster::train {

// RunContext::group.
Result<Communicator*> find_named_group(std::string_view name, std::optional<std::int64_t> tag);

}  // namespace muster::train
