// Memory that a parameter server may take for its rows. Private to train.
#pragma once

#include <cstdint>

#include "muster/base/base.h"

namespace muster::train {

// What this process may still take, in bytes: the least of what its address space (ulimit -v), its control
// groups and the host have left; of the latter two a share, since `processes` take from them. 0: not known.
std::uint64_t memory_left_bytes(std::uint32_t processes, const Files& files = real_files());

}  // namespace muster::train
