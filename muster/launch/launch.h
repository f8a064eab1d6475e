// The door of `launch`: from flags and environment to running processes.
//
//   flags, environment --preset--> LaunchSpec --supervise--> exit code
//
// Presets translate and start nothing; the one supervisor starts what any of them asks for. `keep` makes sure
// that nothing it started outlives it. Ownership: plain values. Threads: supervise and keep belong to a
// process of one thread.
#pragma once

#include "muster/launch/certs.h"           // IWYU pragma: export
#include "muster/launch/doctor.h"          // IWYU pragma: export
#include "muster/launch/doctor_network.h"  // IWYU pragma: export
#include "muster/launch/keeper.h"          // IWYU pragma: export
#include "muster/launch/launch_spec.h"     // IWYU pragma: export
#include "muster/launch/presets/local.h"   // IWYU pragma: export
#include "muster/launch/secret_file.h"     // IWYU pragma: export
#include "muster/launch/status.h"          // IWYU pragma: export
#include "muster/launch/supervisor.h"      // IWYU pragma: export
