// Slow-rank detector: whom the others wait for in step after step, and what holds it up.
//
// What a rank does itself is told apart from its waiting for others, which hides who is late: between steps
// that all make together the slow rank works, and the others wait for it. A pure value: what the heartbeats
// said and the time in, a verdict out. The scheduler feeds it.
#pragma once

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
  // What a worker did between two looks.
  struct Interval {
    std::uint64_t steps = 0;
    ProcessCounters spent = {};
    std::uint64_t round_trip_us = 0;
  };
  struct Rank {
    std::uint64_t step = 0;
    std::uint32_t stage = 0;
    ProcessCounters counters = {};
    std::deque<Interval> intervals = {};
  };
  using Ranks = std::map<std::uint32_t, Rank>;

  bool take(const std::vector<Worker>& workers, TimePoint now);
  std::optional<SlowRank> judge(std::uint32_t number, const Rank& rank) const;
  std::optional<SlowRank> judge_work(std::uint32_t number, const Rank& rank,
                                     const std::vector<const Rank*>& others) const;
  std::optional<SlowRank> judge_network(std::uint32_t number, const Rank& rank,
                                        const std::vector<const Rank*>& others) const;

  static double mean_step_us(const Rank& rank);

  Ranks ranks_;
  TimePoint taken_at_{};
  std::vector<SlowRank> slow_;
};

}  // namespace muster::cluster
