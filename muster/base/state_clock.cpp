#include "muster/base/state_clock.h"

#include <algorithm>
#include <thread>

#include "muster/base/process.h"

namespace muster {
namespace {

constexpr int attempts_max = 1000;  // to read between two changes

}  // namespace

std::size_t StateClock::enter(std::size_t state, TimePoint now) {
  const Duration::rep time = now.time_since_epoch().count();
  const std::size_t before = state_.load(std::memory_order_relaxed);
  const Duration::rep since = since_.load(std::memory_order_relaxed);
  changes_.fetch_add(1);
  if (since != 0) spent_.at(before).fetch_add(time - since);
  state_.store(state);
  since_.store(time);
  changes_.fetch_add(1);
  return before;
}

std::array<Duration, StateClock::states> StateClock::spent(TimePoint now) const {
  std::array<Duration, states> made{};
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    const std::uint64_t before = changes_.load();
    for (std::size_t i = 0; i < states; ++i) made.at(i) = Duration(spent_.at(i).load());
    const Duration::rep since = since_.load();
    const std::size_t state = state_.load();
    if (before % 2 != 0 || changes_.load() != before) continue;
    // A change behind the reading of `now` is later than that.
    if (since != 0) made.at(state) += std::max(Duration(0), now.time_since_epoch() - Duration(since));
    return made;
  }
  return made;
}

void set_thread_clock(StateClock& clock) {
  ThreadClock& mine = process().thread_clock;
  mine.clock = nullptr;  // not that of another thread, between the two
  mine.thread = std::this_thread::get_id();
  mine.clock = &clock;
}

StateClock* thread_clock() {
  const ThreadClock& set = process().thread_clock;
  StateClock* const clock = set.clock.load(std::memory_order_acquire);
  return clock != nullptr && set.thread.load() == std::this_thread::get_id() ? clock : nullptr;
}

WaitingScope::WaitingScope() : clock_(thread_clock()) {
  if (clock_ != nullptr) before_ = clock_->enter(StateClock::waiting, real_clock().now());
}

WaitingScope::~WaitingScope() {
  if (clock_ != nullptr) clock_->enter(before_, real_clock().now());
}

ComputingScope::ComputingScope() : clock_(thread_clock()) {
  if (clock_ == nullptr) return;
  if (clock_->state() == StateClock::script)
    clock_->enter(StateClock::computing, real_clock().now());
  else
    clock_ = nullptr;
}

ComputingScope::~ComputingScope() {
  if (clock_ != nullptr) clock_->enter(StateClock::script, real_clock().now());
}

}  // namespace muster
