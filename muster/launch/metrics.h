// Numbers of a job for Prometheus and what reads its format, asked from the job's scheduler.
#pragma once

#include <optional>
#include <string>

#include "muster/launch/status.h"

namespace muster::launch {

// Text exposition format 0.0.4. Nothing: the scheduler does not answer, which is a number as well
// (muster_up).
std::string metrics_text(const std::optional<JobStatus>& job);

}  // namespace muster::launch
