#include "muster/train/step_marks.h"

#include <algorithm>

#include "muster/train/process.h"
#include "muster/train/training_numbers.h"

namespace muster::train {
namespace {

// Steps that have become so much longer than any usual turn.
constexpr int long_turns = 4;
constexpr double slower_ratio = 1.15;
// Of turns in a row: from here on they are slower, and from there on that is usual.
constexpr int slower_from = 3;
constexpr int slower_to = 16;
constexpr int usual_from = 3;  // the first turns compile
constexpr double usual_share = 0.125;

}  // namespace

bool StepMarks::is_due(std::uint64_t step, TimePoint now) {
  if (step <= seen_) begin_anew();
  seen_ = step;
  const bool is_first = marked_at_ == TimePoint{};
  const Duration turn = now - marked_at_;
  if (!is_first && step % distance_ != 0 && turn < long_turns * turn_min) return false;
  if (!is_first) {
    choose_distance(turn);
    compare(turn, step - marked_);
  }
  marked_ = step;
  marked_at_ = now;
  return true;
}

// It stays the same for turns of once to two and a half times the least.
void StepMarks::choose_distance(Duration turn) {
  if (turn < turn_min)
    distance_ *= 2;
  else if (2 * turn > 5 * turn_min && distance_ > 1)
    distance_ /= 2;
}

void StepMarks::compare(Duration turn, std::uint64_t steps) {
  const double step_ns = static_cast<double>(turn.count()) / static_cast<double>(steps);
  const bool is_known = usual_turns_ >= usual_from;
  const bool is_slower = is_known && step_ns > slower_ratio * usual_step_ns_;
  slower_turns_ = is_slower ? slower_turns_ + 1 : 0;
  if (is_slower && slower_turns_ <= slower_to) return;
  if (!is_known || is_slower)
    usual_step_ns_ = step_ns;
  else
    usual_step_ns_ += usual_share * (step_ns - usual_step_ns_);
  ++usual_turns_;
  slower_turns_ = 0;
}

void StepMarks::begin_anew() {
  distance_ = 1;
  seen_ = marked_ = 0;
  marked_at_ = {};
  usual_turns_ = slower_turns_ = 0;
  begin_.store(end_.load(std::memory_order_relaxed), std::memory_order_release);
}

bool StepMarks::is_slower() const { return slower_turns_ >= slower_from; }

void StepMarks::add(const cluster::ProcessCounters& counters) {
  const std::uint64_t end = end_.load(std::memory_order_relaxed);
  auto& slot = marks_.at(end % kept);
  std::size_t word = 0;
  const auto put = [&](std::uint64_t value) { slot.at(word++).store(value, std::memory_order_relaxed); };
  put(marked_);
  for (const std::uint64_t time : counters.own_us) put(time);
  put(counters.waiting_us);
  put(counters.core_wait_us);
  end_.store(end + 1, std::memory_order_release);
}

std::vector<cluster::StepMark> StepMarks::last() const {
  const std::uint64_t end = end_.load(std::memory_order_acquire);
  const std::uint64_t newest = end - std::min<std::uint64_t>(end, cluster::step_marks_told_max);
  std::vector<cluster::StepMark> made;
  for (std::uint64_t i = std::max(begin_.load(std::memory_order_acquire), newest); i < end; ++i) {
    const auto& slot = marks_.at(i % kept);
    std::size_t word = 0;
    const auto take = [&] { return slot.at(word++).load(std::memory_order_relaxed); };
    cluster::StepMark& mark = made.emplace_back(cluster::StepMark{.step = take()});
    for (std::uint64_t& time : mark.counters.own_us) time = take();
    mark.counters.waiting_us = take();
    mark.counters.core_wait_us = take();
  }
  return made;
}

bool note_step_done(std::uint64_t step) {
  if (thread_clock() == nullptr) return false;
  StepMarks& marks = process().training.marks;
  if (marks.is_due(step, real_clock().now())) {
    cluster::ProcessCounters spent = times_of_main_thread();
    spent.core_wait_us = cluster::core_wait_us();
    marks.add(spent);
  }
  return marks.is_slower();
}

}  // namespace muster::train
