// The door of `train`: the only room that joins cluster, collective, graph and data. A script opens the one
// Session with init(), and trains; the Session watches the other processes and ends this one when the job has
// failed.
//
//   auto role = train::init();                     // forms the cluster that the environment describes
//   if (!role) …                                   // print role.error().message, return
//   role.error().exit_code if (*role != cluster::Role::worker) return 0;  // scheduler and servers: their
//   work is over auto rank = train::get_rank();
//
// Threads: main thread, except where a function says otherwise.
#pragma once

#include "muster/train/agreement.h"      // IWYU pragma: export
#include "muster/train/context.h"        // IWYU pragma: export
#include "muster/train/data_settings.h"  // IWYU pragma: export
#include "muster/train/reducer.h"        // IWYU pragma: export
#include "muster/train/run_context.h"    // IWYU pragma: export
#include "muster/train/session.h"        // IWYU pragma: export
