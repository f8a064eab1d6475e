// --preload: the processes of a host are forked from one that has imported modules for all of them.
#pragma once

#include "muster/launch/launch_spec.h"
#include "muster/launch/settings/job_settings.h"

namespace muster::launch {

// An error where the command is not Python's, where another program starts it, or a module has no name.
Result<> check_preload(const JobSettings& job);

// Has the processes of one host begin with the modules. While these are imported, the variables are set that
// have one value in all of the processes.
void add_preload(LaunchSpec& spec, const JobSettings& job);

}  // namespace muster::launch
