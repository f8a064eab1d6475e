// Private to train: the flight recorder of a worker, in the folder of its run.
#pragma once

#include <memory>

#include "muster/cluster/cluster.h"
#include "muster/telemetry/telemetry.h"

namespace muster::train {

// Null where the job has no run folder (MUSTER_RUN_FOLDER), or that takes no file: then a warning says so. Of
// the files that earlier processes of this rank have left there, the newest stay.
std::shared_ptr<telemetry::FlightRecorder> open_flight_recorder(const cluster::Node& node,
                                                                const Environment& environment);

}  // namespace muster::train
