// Public header of `cluster`: from environment variables to a Roster, and the watch over the job until it
// ends.
//
//   read_settings(environment) -> Settings
//   scheduler:  run_scheduler(settings)                      blocks until the job has ended
//   worker:     describe_host(settings) -> Registration      then open the data port and add it
//               Node::join(settings, registration) -> Node   blocks until the roster is complete
//               node->leave(status, reason)                  done (0) or failed
//   people:     Visit::open(loop, clock, address) -> Visit   asks a scheduler, being no part of the job
//
// Ownership: plain values; a Node owns its thread and its connection. Threads: see each class. A death or a
// failure of any process fails the job; every node hears the first reason.
#pragma once

#include "muster/cluster/activity.h"           // IWYU pragma: export
#include "muster/cluster/echo_listener.h"      // IWYU pragma: export
#include "muster/cluster/fingerprint.h"        // IWYU pragma: export
#include "muster/cluster/membership_report.h"  // IWYU pragma: export
#include "muster/cluster/node_process.h"       // IWYU pragma: export
#include "muster/cluster/process_stats.h"      // IWYU pragma: export
#include "muster/cluster/roster.h"             // IWYU pragma: export
#include "muster/cluster/scheduler_process.h"  // IWYU pragma: export
#include "muster/cluster/security_settings.h"  // IWYU pragma: export
#include "muster/cluster/variables.h"          // IWYU pragma: export
#include "muster/cluster/visit.h"              // IWYU pragma: export
