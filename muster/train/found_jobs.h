// The jobs below MS_RECOVERY_PATH, as a worker tells of them when it joins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/cluster/cluster.h"

namespace muster::train {

std::vector<cluster::FoundJob> jobs_found_in(const std::string& recovery_path);

// Which processes use folders of this job below the path, for people; nothing: none, as far as locks tell.
std::optional<std::string> holders_of(const std::string& recovery_path, std::uint64_t job_id);

// Keeps the job's seed beside the points of a worker, for the case that the scheduler loses it. What fails is
// a warning: the points are worth more.
void keep_seed(const std::string& worker_folder, std::uint64_t seed);

}  // namespace muster::train
