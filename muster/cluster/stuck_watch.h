// Stuck-job detector: learns from the steps of a job how long one may take, and so tells a stuck job from a
// slow one.
//
// A pure value: events and the time in, a verdict out. The scheduler feeds it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "muster/base/base.h"
#include "muster/cluster/activity.h"

namespace muster::cluster {

class StuckWatch {
 public:
  // What has been finished up to now, of one process or the most of all.
  struct Mark {
    std::uint64_t steps = 0;
    std::uint64_t others = 0;
    friend bool operator==(const Mark&, const Mark&) = default;
  };

  // `chosen`: the limit whatever the job's steps take, 0 for none at all; nothing: it is learned.
  explicit StuckWatch(std::optional<Duration> chosen) : chosen_(chosen) {}

  // An epoch begins: all count from nothing. Its first steps may take long, as all first steps do.
  void begin(TimePoint now);
  // A process has come from `before` to `mark`. The pause that ends, when people had been told of it.
  std::optional<Duration> moved(const Mark& before, const Mark& mark, TimePoint now);
  // The scheduler itself was stopped for so long.
  void forgive(Duration pause) { last_ += pause; }

  // How long nothing may be finished while the slowest processes are in `phase`.
  Duration limit(WorkPhase phase) const;
  // Whether people are to be told now; then not again for as long as it has been going on.
  bool is_due(WorkPhase phase, TimePoint now);
  Duration pause(TimePoint now) const { return now - last_; }
  // What a step took lately; nothing before that is known.
  std::optional<Duration> usual() const;

 private:
  Duration limit_of_first_steps(Duration least_again) const;

  std::optional<Duration> chosen_;
  TimePoint last_;  // when something was finished
  bool is_told_ = false;
  TimePoint next_told_;

  std::optional<Mark> most_ = {};       // of all processes, in this epoch
  std::uint64_t steps_ = 0;             // by which `most_` has risen
  std::optional<TimePoint> last_most_;  // when it did
  std::deque<Duration> gaps_ = {};      // between its last rises, of all epochs
  Duration longest_{};                  // of all of them
  Duration longest_first_{};            // pause before the first steps of an epoch
  bool had_steps_ = false;              // in an epoch before
};

}  // namespace muster::cluster
