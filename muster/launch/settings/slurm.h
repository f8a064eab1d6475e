// Job settings from Slurm's variables: `srun muster run train.py`.
//
// One task on each node (srun --ntasks-per-node=1): each node is a host, with as many workers as -n says, or
// as there are GPUs. Several tasks on a node: each task is one worker, so that Slurm binds it to its cores
// and GPUs.
#pragma once

#include "muster/launch/settings/job_settings.h"

namespace muster::launch {

// Empty outside of Slurm. `asked` is what flags and the job file say; what contradicts it is an error that
// names both.
Result<PartialSettings> slurm_settings(const Environment& environment, const PartialSettings& asked);

}  // namespace muster::launch
