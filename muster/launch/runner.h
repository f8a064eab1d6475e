// From settings to an exit code: what `muster run` does once it knows what is wanted.
//
//   JobSettings --check--> ports, folder of this run --preset--> LaunchSpec --supervise--> exit code
#pragma once

#include <string>

#include "muster/launch/settings/job_settings.h"
#include "muster/launch/settings/sources.h"

namespace muster::launch {

// Finds out what can be known to be wrong before anything is started, and makes names of secret files such
// that every process can read them. To be called before run_job and describe_job.
Result<JobSettings> prepared(JobSettings job, const Environment& environment);

// Starts the processes of this host, watches over them and returns the job's exit code. job.log_folder
// exists. To be called by a process with one thread.
int run_job(const JobSettings& job, const Environment& environment, const Clock& clock);

// The job as a job file, and in comments below it each process that this host would start: its variables and
// its command. Starts nothing.
Result<std::string> describe_job(const JobSettings& job, const Environment& environment, WithOrigins origins);

}  // namespace muster::launch
