// Hosts from the variables of a training platform: those that ModelArts and its kind set in each container
// (MA_*, VC_*, VK_*).
#pragma once

#include "muster/launch/settings/job_settings.h"

namespace muster::launch {

// Empty where there are none. Variables: VC_WORKER_HOSTS (names, by commas), or MA_NUM_HOSTS with MA_VJ_NAME
// and MA_TASK_NAME ("<job>-<task>-<i>.<job>"); MA_TASK_INDEX, else VC_TASK_INDEX, else VK_TASK_INDEX;
// MY_MPI_SLOTS, else MA_NUM_GPUS. Errors name the variable.
Result<PartialSettings> platform_settings(const Environment& environment);

}  // namespace muster::launch
