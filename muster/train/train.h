// Public header of `train`: the only module that joins cluster, collective, graph, data and checkpoint. A
// script joins its job with init(), and trains with a Model; the other processes are watched meanwhile, and
// this one is ended when the job has failed. run() forms the cluster that the environment describes:
//
//   int main() { return muster::train::run([] { ... }); }
//
// Threads: main thread, except where a function says otherwise.
#pragma once

#include "muster/train/activity_scope.h"     // IWYU pragma: export
#include "muster/train/callback.h"           // IWYU pragma: export
#include "muster/train/context.h"            // IWYU pragma: export
#include "muster/train/control_callbacks.h"  // IWYU pragma: export
#include "muster/train/data_settings.h"      // IWYU pragma: export
#include "muster/train/explain.h"            // IWYU pragma: export
#include "muster/train/front_end.h"          // IWYU pragma: export
#include "muster/train/job.h"                // IWYU pragma: export
#include "muster/train/metrics.h"            // IWYU pragma: export
#include "muster/train/model.h"              // IWYU pragma: export
#include "muster/train/model_checkpoint.h"   // IWYU pragma: export
#include "muster/train/monitors.h"           // IWYU pragma: export
#include "muster/train/parameters.h"         // IWYU pragma: export
#include "muster/train/pipeline_layout.h"    // IWYU pragma: export
#include "muster/train/program.h"            // IWYU pragma: export
#include "muster/train/ps_context.h"         // IWYU pragma: export
#include "muster/train/recoverable.h"        // IWYU pragma: export
#include "muster/train/reducer.h"            // IWYU pragma: export
#include "muster/train/run_context.h"        // IWYU pragma: export
// DROP            // IWYU pragma: export
#include "muster/train/train_step.h"  // IWYU pragma: export
