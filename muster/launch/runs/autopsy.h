// Autopsy of a job from the flight recorders of its workers: which rank the others waited for, and since
// when. A pure function of what was read.
#pragma once

#include <string>
#include <vector>

#include "muster/launch/dashboard/job_history.h"
#include "muster/telemetry/telemetry.h"

namespace muster::launch {

struct Evidence {
  std::vector<telemetry::Flight> flights = {};  // several of a rank, where it died and came back
  std::vector<JobEvent> events = {};            // of the run's history
  std::int64_t now_ns = 0;                      // for calls that still go on
  bool runs = false;                            // the job does: a short wait is none
};

// A paragraph for each epoch of the cluster in which calls were not completed, the newest last, and a table
// of the last calls.
std::string findings_of(const Evidence& evidence);

// "all_reduce #18 (1000 x float32, sum)", "message #3 to rank 1 (64 bytes)".
std::string describe(const telemetry::FlightRecord& record);

}  // namespace muster::launch
