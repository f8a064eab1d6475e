// Private to train: step marks, what the main thread had spent when late steps were done, for the scheduler,
// which compares the ranks step by step.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/cluster/cluster.h"

namespace muster::train {

// A mark stands behind each step, or, where steps are short, behind each second, fourth, eighth, ... one by
// its number, so that all ranks choose the same: at most some forty a second.
// Threads: one thread makes steps, any reads. Without a lock, which a forked child could find taken.
class StepMarks {
 public:
  static constexpr Duration turn_min = std::chrono::milliseconds(25);

  // Whether the end of this step is marked. Steps that are no higher than the last begin anew.
  bool is_due(std::uint64_t step, TimePoint now);
  // After that: this is what was spent.
  void add(const cluster::ProcessCounters& counters);
  // The steps that follow were made before, or are others.
  void begin_anew();

  // Whether the steps between the last few marks took longer than those before them, each. After a while
  // longer steps are usual.
  bool is_slower() const;

  // The newest, at most step_marks_told_max.
  std::vector<cluster::StepMark> last() const;

 private:
  static constexpr std::size_t words = 3 + cluster::work_phase_count;
  static constexpr std::size_t kept = 2 * cluster::step_marks_told_max;  // half may be read while others come

  void choose_distance(Duration turn);
  void compare(Duration turn, std::uint64_t steps);

  // Of who makes steps.
  std::uint64_t distance_ = 1;  // in steps, a power of two
  std::uint64_t seen_ = 0;      // step
  std::uint64_t marked_ = 0;
  TimePoint marked_at_{};  // the clock's zero: nothing is
  double usual_step_ns_ = 0;
  int usual_turns_ = 0;  // that it is known from
  int slower_turns_ = 0;

  std::array<std::array<std::atomic<std::uint64_t>, words>, kept> marks_{};
  std::atomic<std::uint64_t> begin_{0};  // of all that were ever made, the first that counts
  std::atomic<std::uint64_t> end_{0};
};

// The main thread has made this step. Whether heartbeats should come sooner.
bool note_step_done(std::uint64_t step);

}  // namespace muster::train
