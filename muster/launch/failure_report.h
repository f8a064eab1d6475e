// Last report of a launcher whose job failed.
#pragma once

#include <cstddef>
#include <vector>

#include "muster/launch/console.h"
#include "muster/launch/outputs.h"
#include "muster/launch/verdict.h"

namespace muster::launch {

// How all ended, the tracebacks that differ from the cause's, and the cause with its last lines. `failed`: of
// `ends`, in the order in which they ended. Returns the exit code of the job.
int report_failure(const std::vector<ProcessEnd>& ends, const std::vector<std::size_t>& failed,
                   Outputs& outputs, Console& console);

}  // namespace muster::launch
