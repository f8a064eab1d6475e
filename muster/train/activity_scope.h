// Activity of this process's main thread, for the ranks that wait for it: it travels with the heartbeat.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/base/state_clock.h"
#include "muster/cluster/cluster.h"

namespace muster::train {

// From its construction to its destruction; then it is again what it was before. Two stores, and in a job two
// readings of the clock.
// Threads: of any but the main thread it does nothing: one that reads data ahead may end after a scope within
// which it began, and would set back what is no more.
class ActivityScope {
 public:
  explicit ActivityScope(cluster::WorkPhase phase);
  ~ActivityScope();
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

 private:
  cluster::WorkPhase before_;
};

// What the main thread does where nothing else is said. Nothing on another thread.
void set_activity(cluster::WorkPhase phase);
// Something that is no step is done: a batch of an evaluation, a call of a cell, an item of a dataset.
// A worker that notes this again and again is not stuck.
void note_finished();
// The epoch of a training, from 1; 0: the training has ended.
void note_train_epoch(std::int64_t epoch);

// From now on the calling thread is the main thread.
void lead_activity();
// The same, and from now on a clock runs for it: MainActivity::clock.
void start_clock();
// Its states from here on are the phases.
inline constexpr std::size_t first_phase_state = StateClock::waiting + 1;

// Without calls with other workers. Any thread.
cluster::Activity activity_of_main_thread();

}  // namespace muster::train
