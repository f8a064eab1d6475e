// Private to train: numbers of the training that runs, for who watches the job. They travel with the
// heartbeat; in a process without a job they cost a store each.
#pragma once

#include <cstdint>
#include <span>

#include "muster/cluster/cluster.h"
#include "muster/tensor/tensor.h"
#include "muster/train/callback.h"

namespace muster::train {

// Of a step that was made. Main thread.
void note_loss(double loss);
// A step of a Model begins: its learning rate, looked at a few times a second, and the samples of its batch
// where this rank is the one to count them.
void note_step_of_model(const CallbackContext& context, std::span<const Tensor> batch);
void note_metrics(const MetricValues& values);
// The stage of a placed network that this worker has.
void note_stage(std::uint32_t stage);

// What it has spent in each phase, and waiting. Any thread.
cluster::ProcessCounters times_of_main_thread();
// All of them, and the times of the main thread. One thread, any.
cluster::ProcessStats numbers_of_training();

}  // namespace muster::train
