// Public header of `train`: the only module that joins cluster, collective, graph, data and checkpoint.
//
//   void train_network() {
//     Network network;
//     nn::CrossEntropyLoss loss_fn;
//     nn::SGD optimizer(network, {.learning_rate = 0.01});
//     train::TrainStep step(network, loss_fn, optimizer);
//     for (const data::Item& batch : train::batches(images, 0)) step(batch);  // a data::Dataset, epoch 0
//   }
//
//   int main() { return train::run(train_network); }
//
// run() forms the job that the environment describes and calls its argument in each worker. A Model has the
// loop and its callbacks built in. This process is ended when another one of the job has failed.
//
// Threads: main thread, except where a function says otherwise.
#pragma once

#include "muster/train/activity_scope.h"     // IWYU pragma: export
#include "muster/train/callback.h"           // IWYU pragma: export
#include "muster/train/context.h"            // IWYU pragma: export
#include "muster/train/control_callbacks.h"  // IWYU pragma: export
#include "muster/train/data_settings.h"      // IWYU pragma: export
#include "muster/train/explain.h"            // IWYU pragma: export
#include "muster/train/export.h"             // IWYU pragma: export
#include "muster/train/front_end.h"          // IWYU pragma: export
#include "muster/train/group_ops.h"          // IWYU pragma: export
#include "muster/train/job.h"                // IWYU pragma: export
#include "muster/train/metrics.h"            // IWYU pragma: export
#include "muster/train/model.h"              // IWYU pragma: export
#include "muster/train/model_checkpoint.h"   // IWYU pragma: export
#include "muster/train/monitors.h"           // IWYU pragma: export
#include "muster/train/parallel.h"           // IWYU pragma: export
#include "muster/train/parameter_servers.h"  // IWYU pragma: export
#include "muster/train/parameters.h"         // IWYU pragma: export
#include "muster/train/pipeline_layout.h"    // IWYU pragma: export
#include "muster/train/profile.h"            // IWYU pragma: export
#include "muster/train/program.h"            // IWYU pragma: export
#include "muster/train/ps_context.h"         // IWYU pragma: export
#include "muster/train/recoverable.h"        // IWYU pragma: export
#include "muster/train/reducer.h"            // IWYU pragma: export
#include "muster/train/run_context.h"        // IWYU pragma: export
#include "muster/train/saved_loop.h"         // IWYU pragma: export
#include "muster/train/step_logger.h"        // IWYU pragma: export
#include "muster/train/train_step.h"         // IWYU pragma: export
