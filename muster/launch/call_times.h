// Table of call times of this machine (muster::CallTimes): measured once, and kept in a file of the user's
// cache. Public for apps.
#pragma once

#include <cstdint>
#include <string>

#include "muster/base/base.h"
#include "muster/base/call_times.h"

namespace muster::launch {

// More workers of one machine than these are not measured.
inline constexpr std::uint32_t measured_workers_max = 64;

// The file of the table between so many workers (muster::call_times_file): as it is, or measured now where
// there is none that can be read, or where `anew`. It starts so many processes for a second or two. Call it
// before this process has threads.
Result<std::string> prepare_call_times(const Environment& environment, std::uint32_t workers, bool anew);

}  // namespace muster::launch
