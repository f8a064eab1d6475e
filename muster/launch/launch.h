// Public header of `launch`: from flags and environment to running processes.
//
//   flags, job file, environment --> JobSettings --preset--> LaunchSpec --supervise--> exit code
//
// Settings have several sources and one result; presets translate it and start nothing; the one supervisor
// starts what any of them asks for. `keep` makes sure that nothing it started outlives it. Ownership: plain
// values. Threads: run_job, supervise and keep belong to a process of one thread.
#pragma once

#include "muster/launch/certs.h"                     // IWYU pragma: export
#include "muster/launch/doctor.h"                    // IWYU pragma: export
#include "muster/launch/doctor_network.h"            // IWYU pragma: export
#include "muster/launch/hosts/agent.h"               // IWYU pragma: export
#include "muster/launch/hosts/mpi_daemon.h"          // IWYU pragma: export
#include "muster/launch/hosts/rendezvous.h"          // IWYU pragma: export
#include "muster/launch/keeper.h"                    // IWYU pragma: export
#include "muster/launch/kubernetes/job.h"            // IWYU pragma: export
#include "muster/launch/kubernetes/sidecar.h"        // IWYU pragma: export
#include "muster/launch/launch_spec.h"               // IWYU pragma: export
#include "muster/launch/presets/preset.h"            // IWYU pragma: export
#include "muster/launch/rank_table.h"                // IWYU pragma: export
#include "muster/launch/run_folder.h"                // IWYU pragma: export
#include "muster/launch/runner.h"                    // IWYU pragma: export
#include "muster/launch/secret_file.h"               // IWYU pragma: export
#include "muster/launch/settings/from_rank_table.h"  // IWYU pragma: export
#include "muster/launch/settings/guess.h"            // IWYU pragma: export
#include "muster/launch/settings/hostfile.h"         // IWYU pragma: export
#include "muster/launch/settings/job_file.h"         // IWYU pragma: export
#include "muster/launch/settings/job_settings.h"     // IWYU pragma: export
#include "muster/launch/settings/kubernetes.h"       // IWYU pragma: export
#include "muster/launch/settings/platform.h"         // IWYU pragma: export
#include "muster/launch/settings/slurm.h"            // IWYU pragma: export
#include "muster/launch/status.h"                    // IWYU pragma: export
#include "muster/launch/supervisor.h"                // IWYU pragma: export
