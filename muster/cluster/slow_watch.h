// Slow-rank detector: whom the others wait for in step after step, and what holds it up.
//
// What a rank does itself is told apart from its waiting for others, which hides who is late: between steps
// that all make together the slow rank works, and the others wait for it. A pure value: what the heartbeats
// said and the time in, a verdict out. The scheduler feeds it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "muster/base/base.h"
#include "muster/cluster/process_stats.h"

namespace muster::cluster {

class SlowWatch {
 public:
  // A worker at work, as it was heard of last.
  struct Worker {
    std::uint32_t rank = 0;
    std::uint64_t step = 0;
    const ProcessStats* stats = nullptr;
  };

  // An epoch begins, or the scheduler itself was stopped: what was seen before says nothing.
  void clear();
  // To be called often. Who is slow now and was not when it was asked before.
  std::vector<SlowRank> look(const std::vector<Worker>& workers, TimePoint now);
  const std::vector<SlowRank>& slow() const { return slow_; }

 private:
  // Of an interval's time, or summed over several.
  struct Shares {
    std::array<double, work_phase_count> phases{};
    double waiting = 0;
    double core_wait = 0;

    static Shares of(const ProcessCounters& spent);
    double own() const;
    void add(const Shares& other);
    // The phase that takes more than it does there.
    std::size_t most_above(const Shares& other) const;
  };
  // Numbers of ranks. Of a thousand each is compared with the median of the others: they are sorted once.
  class Sorted {
   public:
    void add(double number) { numbers_.push_back(number); }
    void sort();
    std::size_t size() const { return numbers_.size(); }
    // Of all but one that has `left_out`. At least two are there.
    double median_without(double left_out) const;

   private:
    std::vector<double> numbers_;
  };
  // What the ranks of a stage did in one interval.
  struct Stage {
    std::array<Sorted, work_phase_count> phases = {};
    Sorted waiting = {};
    Sorted core_wait = {};

    void add(const Shares& shares);
    void sort();
    Shares median_without(const Shares& left_out) const;
  };
  // What a worker did between two looks.
  struct Interval {
    std::uint64_t steps = 0;
    double whole_us = 0;
    Shares shares = {};
    std::uint64_t round_trip_us = 0;
  };
  struct Rank {
    std::uint64_t step = 0;
    std::uint32_t stage = 0;
    ProcessCounters counters = {};
    std::deque<Interval> intervals = {};
  };
  using Stages = std::map<std::uint32_t, Stage>;
  using RoundTrips = std::map<std::uint32_t, Sorted>;  // by stage

  bool take(const std::vector<Worker>& workers, TimePoint now);
  std::vector<SlowRank> judge_all() const;
  std::optional<SlowRank> judge_work(std::uint32_t number, const Rank& rank) const;
  std::optional<SlowRank> judge_network(std::uint32_t number, const Rank& rank, const Sorted& usual) const;

  static double round_trip_us(const Rank& rank);
  static double mean_step_us(const Rank& rank);

  std::map<std::uint32_t, Rank> ranks_;
  std::deque<Stages> stages_;  // of the intervals of the ranks
  TimePoint taken_at_{};
  std::vector<SlowRank> slow_;
};

}  // namespace muster::cluster
