// Private to train: files of a worker in the folder of its run: its flight recorder, its seed, its last
// step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/cluster/cluster.h"
#include "muster/telemetry/telemetry.h"

namespace muster::train {

// That of this process, in the folder of a run.
std::string flight_file(const std::string& run_folder, std::uint32_t rank);

// Null where the job has no run folder (MUSTER_RUN_FOLDER), or that takes no file: then a warning says so. Of
// the files that earlier processes of this rank have left there, the newest stay.
std::shared_ptr<telemetry::FlightRecorder> open_flight_recorder(const cluster::Node& node,
                                                                const Environment& environment);

// The seed of everything random, in the folder of the run, from rank 0. Once for each seed.
void keep_seed(const Environment& environment);
// With the last step and its loss, from rank 0 at its end: the launcher, which asks once a second, sees none
// of a short job's. Nothing before a first step.
void keep_last_step(const Environment& environment, std::uint32_t rank, std::uint64_t step);

}  // namespace muster::train
