// The scheduler of a job, as a call that blocks until the job has ended.
#pragma once

#include <functional>

#include "muster/cluster/variables.h"

namespace muster::cluster {

// Asked on the calling thread about every 100 ms while a call blocks; true ends the call. It may look for
// signals.
using Interrupted = std::function<bool()>;

// Of a job whose processes may come back, below MS_RECOVERY_PATH: it stays when the job has ended.
inline constexpr const char* recovery_log_name = "scheduler.log";

struct SchedulerOptions {
  std::optional<std::uint64_t> seed = {};  // the job's; absent: drawn
  Interrupted interrupted = {};            // absent: never
  // The process that uses something of this job below MS_RECOVERY_PATH, for people; nothing, or absent: none.
  std::function<std::optional<std::string>(std::uint64_t job_id)> holders = {};
};

// Serves the job. Nothing: every worker left done. A failure otherwise, which has also been told to every
// node that could be reached.
std::optional<Failure> run_scheduler(const Settings& settings, const SchedulerOptions& options = {});

}  // namespace muster::cluster
