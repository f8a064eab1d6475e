// Slow-rank detector: whom the others wait for in step after step, and what holds it up.
//
// What a rank does itself is told apart from its waiting for others, which hides who is late: between steps
// that all make together the slow rank works, and the others wait for it. A pure value: what the heartbeats
// said in, a verdict out. The scheduler feeds it.
#pragma once

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
  // An epoch begins, or other workers are at work: what was seen before says nothing.
  void clear();
  // A heartbeat of a worker.
  void hear(std::uint32_t rank, const ProcessStats& stats);
  // Whether so many workers were heard of since the last look.
  bool has_heard(std::size_t workers) const { return heard_ >= workers; }
  // Who is slow now and was not at the look before. A network is to blame only where there is one.
  std::vector<SlowRank> look(bool has_network);
  const std::vector<SlowRank>& slow() const { return slow_; }

 private:
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
  // What a worker did between two marks that all have: in one step, or several short ones.
  struct Turn {
    std::uint64_t steps = 0;
    double own_us = 0;
    double waiting_us = 0;
    ProcessCounters spent = {};

    double whole_us() const { return own_us + waiting_us; }
  };
  struct Rank {
    std::uint32_t stage = 0;
    std::deque<StepMark> marks = {};  // the first: that at which the last turn ended
    std::deque<Turn> turns = {};      // the last ones
    double often = 0;                 // the share of turns in which the others waited for it
    double turns_known = 0;
    int in_a_row = 0;      // of those turns; one in which they do not takes several away
    int needed = 0;        // of those in a row: so many do not come by chance
    bool is_slow = false;  // by its work
    std::uint64_t round_trip_us = 0;
    bool is_heard = false;     // since the last look
    bool is_trip_new = false;  // since then
    int late_trips = 0;        // in a row
    double usual_trip_us = 0;  // of the others then
    std::optional<SlowRank> verdict = {};
  };
  // Of the ranks of a stage, in one turn.
  struct Stage {
    Sorted own = {};
    Sorted waiting = {};
  };
  using Stages = std::map<std::uint32_t, Stage>;

  std::vector<std::uint64_t> common_steps() const;
  void take_turn(std::uint64_t begin, std::uint64_t end);
  void compare_round_trips();
  void judge(std::uint32_t number, Rank& rank, bool has_network);
  std::optional<SlowRank> judge_work(std::uint32_t number, const Rank& rank) const;
  std::optional<SlowRank> judge_network(std::uint32_t number, const Rank& rank) const;
  template <class Number>
  double usual(const Rank& rank, Number number_of) const;
  std::vector<SlowRank> take_news();

  static void count(Rank& rank, const Stage& stage);
  static Turn sum(const Rank& rank);

  std::map<std::uint32_t, Rank> ranks_;
  std::size_t heard_ = 0;  // ranks, since the last look
  std::vector<SlowRank> slow_;
};

}  // namespace muster::cluster
