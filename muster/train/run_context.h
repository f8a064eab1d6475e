// Run context: what graphs need of this process's part in the job.
#pragma once

#include "muster/graph/graph.h"

namespace muster::train {

// Seed, threads and, in a cluster, the communicator over all workers, and the stages of a placed network.
// Cheap; ask again for each run: each answer counts as a step, so that every run draws random numbers of its
// own, the same on all workers. An error where the job cannot be divided as the network is placed.
Result<graph::RunContext> run_context();

// The same without counting a step, for what is traced and does not run.
Result<graph::RunContext> tracing_context();

// Whom runs tell of their steps; null: no times are taken.
graph::RunObserver* observer();

// The workers that share this process's copy of a placed network; null where nothing is divided.
Communicator* stages();

// The step of the next run: 0 after set_seed(), and what a resumed training goes on from.
void count_runs_from(std::uint64_t step);
std::uint64_t counted_runs();

// From now on the updates of parameters are watched: an optimizer that a job's process calls without having
// called init() is an error, and workers whose parameters differ are told (ADR 29). Set before training.
void watch_updates();

// From now on a loss that is NaN or infinite is told, once for each training; and detect_anomaly() is on
// where MUSTER_DETECT_ANOMALY says so. MUSTER_METRICS_FILE says where trainings of a Model write the numbers
// of their steps. Set before training.
void watch_numbers(const Environment& environment);

}  // namespace muster::train
