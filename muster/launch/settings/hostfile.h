// Lists of hosts with their slots, as users and other systems write them.
#pragma once

#include <string_view>
#include <vector>

#include "muster/launch/settings/job_settings.h"

namespace muster::launch {

inline constexpr std::size_t hosts_max = 16384;
inline constexpr std::size_t hostfile_bytes_max = 1 << 20;

// "a:4,b:4,10.0.0.3,[fd00::1]:2,user@c": a host without slots has 0 of them.
Result<std::vector<HostSlots>> parse_hosts(std::string_view text);

// A file with one host a line: "a slots=4" as Open MPI has it, "a:4", or "a"; '#' begins a comment. `name` of
// the file stands in errors, with the line's number.
Result<std::vector<HostSlots>> parse_hostfile(std::string_view text, std::string_view name);

}  // namespace muster::launch
