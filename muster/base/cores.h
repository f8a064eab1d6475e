// Cores that a process may use: those that the system may run it on, and how much of their time its control
// groups leave it, as the CPU limit of a container does.
#pragma once

#include <cstdint>
#include <optional>

#include "muster/base/files.h"

namespace muster {

// Of this machine, at least 1; fewer where control groups give less than their time.
int host_cores();
// Of those, where the system may run this thread: fewer under taskset, or as a task of Slurm.
int allowed_cores();
// Equal for processes that may run on the same cores; 0: not known.
std::uint64_t allowed_cores_key();

// So many cores' time control groups give this process: 1.5 where they give 150 ms in 100. Nothing: they set
// no bound.
std::optional<double> cores_of_control_groups(const Files& files);

}  // namespace muster
