// Removal of recovery points on a user's command.
#pragma once

#include <string>
#include <vector>

#include "muster/checkpoint/run_folders.h"

namespace muster::checkpoint {

// The jobs at `path`, which is absolute: MS_RECOVERY_PATH, the folder of a job, or that of one worker; of
// that the only rank is the worker's. None where there are no such folders.
std::vector<FoundJob> jobs_at(const std::string& path, Storage& storage = real_storage());

// MS_RECOVERY_PATH of a job that was found.
std::string recovery_path_of(const FoundJob& job);

// Removes the folders of the job's `ranks`, and that of the job with the last of them. Refused while a
// process of the job is under way. A kill in between leaves nothing that looks like a job.
Result<> remove_job(const FoundJob& job, Storage& storage = real_storage());

}  // namespace muster::checkpoint
