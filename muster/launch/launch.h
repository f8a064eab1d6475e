// Public header of `launch`: from flags and environment to running processes.
//
//   flags, job file, environment --> JobSettings --preset--> LaunchSpec --supervise--> exit code
//
// Settings have several sources and one result; presets translate it and start nothing; run_job starts what
// any of them asks for, and nothing that it started outlives it. Ownership: plain values. Threads: run_job,
// run_agent and run_sidecar belong to a process of one thread.
#pragma once

#include "muster/launch/certs.h"                  // IWYU pragma: export
#include "muster/launch/doctor.h"                 // IWYU pragma: export
#include "muster/launch/hosts/agent.h"            // IWYU pragma: export
#include "muster/launch/hosts/mpi_daemon.h"       // IWYU pragma: export
#include "muster/launch/kubernetes/job.h"         // IWYU pragma: export
#include "muster/launch/kubernetes/sidecar.h"     // IWYU pragma: export
#include "muster/launch/presets/preset.h"         // IWYU pragma: export
#include "muster/launch/rank_table.h"             // IWYU pragma: export
#include "muster/launch/runner.h"                 // IWYU pragma: export
#include "muster/launch/secret_file.h"            // IWYU pragma: export
#include "muster/launch/settings/job_settings.h"  // IWYU pragma: export
#include "muster/launch/settings/sources.h"       // IWYU pragma: export
#include "muster/launch/status.h"                 // IWYU pragma: export
