#include "muster/train/activity_scope.h"

#include <atomic>

namespace muster::train {
namespace {

std::atomic<cluster::WorkPhase> phase_now{cluster::WorkPhase::starting};
std::atomic<std::uint64_t> finished{0};
std::atomic<std::uint64_t> train_epoch{0};

}  // namespace

ActivityScope::ActivityScope(cluster::WorkPhase phase) : before_(phase_now.load(std::memory_order_relaxed)) {
  set_activity(phase);
}
ActivityScope::~ActivityScope() { set_activity(before_); }

void set_activity(cluster::WorkPhase phase) { phase_now.store(phase, std::memory_order_relaxed); }
void note_finished() { finished.fetch_add(1, std::memory_order_relaxed); }
void note_train_epoch(std::int64_t epoch) {
  train_epoch.store(static_cast<std::uint64_t>(epoch), std::memory_order_relaxed);
}

cluster::Activity activity_of_main_thread() {
  return {.phase = phase_now.load(std::memory_order_relaxed),
          .finished = finished.load(std::memory_order_relaxed),
          .train_epoch = train_epoch.load(std::memory_order_relaxed)};
}

}  // namespace muster::train
