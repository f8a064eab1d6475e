#include "muster/train/activity_scope.h"

#include <atomic>
#include <thread>

#include "muster/train/process.h"
#include "muster/train/profile_recorder.h"
#include "muster/train/step_lines.h"

namespace muster::train {
namespace {

// That of the main thread's clock.
std::size_t clock_state(cluster::WorkPhase phase) {
  return first_phase_state + static_cast<std::size_t>(phase);
}

bool is_main_thread() {
  return process().activity.thread.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

}  // namespace

ActivityScope::ActivityScope(cluster::WorkPhase phase)
    : before_(process().activity.phase.load(std::memory_order_relaxed)) {
  set_activity(phase);
}
ActivityScope::~ActivityScope() { set_activity(before_); }

void set_activity(cluster::WorkPhase phase) {
  if (!is_main_thread()) return;
  if (ProfileRecorder* const profile = process().profile.active.load(std::memory_order_relaxed))
    profile->enter(phase);
  if (StepLines* const lines = process().step_lines; lines != nullptr && lines->is_recording())
    lines->enter(phase);
  process().activity.phase.store(phase, std::memory_order_relaxed);
  if (StateClock* const clock = thread_clock()) clock->enter(clock_state(phase), real_clock().now());
}
void note_finished() { process().activity.finished.fetch_add(1, std::memory_order_relaxed); }
void note_train_epoch(std::int64_t epoch) {
  process().activity.train_epoch.store(static_cast<std::uint64_t>(epoch), std::memory_order_relaxed);
}

void lead_activity() {
  process().activity.thread.store(std::this_thread::get_id(), std::memory_order_relaxed);
}

void start_clock() {
  lead_activity();
  MainActivity& now = process().activity;
  set_thread_clock(now.clock);
  set_activity(now.phase.load(std::memory_order_relaxed));
}

cluster::Activity activity_of_main_thread() {
  const MainActivity& now = process().activity;
  return {.phase = now.phase.load(std::memory_order_relaxed),
          .finished = now.finished.load(std::memory_order_relaxed),
          .train_epoch = now.train_epoch.load(std::memory_order_relaxed),
          .awaited = now.awaited.load(std::memory_order_relaxed)};
}

}  // namespace muster::train
