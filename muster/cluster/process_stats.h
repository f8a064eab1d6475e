// Numbers that a process tells of itself with its heartbeats: for people, since no decision of a job depends
// on them. What became of them lately, its pace, and ranks that are slow by them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/base.h"
#include "muster/cluster/activity.h"

namespace muster::cluster {

inline constexpr std::size_t work_phase_count = std::size(work_phases);

// Counted since the process began; they only rise.
struct ProcessCounters {
  std::uint64_t samples = 0;  // that went through its steps
  std::uint64_t cpu_us = 0;   // of all its threads
  std::array<std::uint64_t, work_phase_count>
      own_us{};                    // of the main thread, by WorkPhase, without `waiting_us`
  std::uint64_t waiting_us = 0;    // of the main thread, in calls with other processes
  std::uint64_t core_wait_us = 0;  // of all threads, ready to run but without a core

  // What came to them since `before`.
  ProcessCounters since(const ProcessCounters& before) const;
  friend bool operator==(const ProcessCounters&, const ProcessCounters&) = default;
};

// What had been counted when a step was done, of the main thread alone.
struct StepMark {
  std::uint64_t step = 0;
  ProcessCounters counters = {};
  friend bool operator==(const StepMark&, const StepMark&) = default;
};
// Of one heartbeat, the newest.
inline constexpr std::size_t step_marks_told_max = 32;

struct ProcessStats {
  ProcessCounters counters = {};
  std::optional<double> loss = {};           // of the last step
  std::optional<double> learning_rate = {};  // of a late step; nothing where groups of parameters differ
  std::uint64_t memory_bytes = 0;            // resident; 0: unknown
  std::uint64_t round_trip_us = 0;           // of the last heartbeat; 0: unknown
  std::uint32_t stage = 0;                   // of a placed network
  std::vector<std::pair<std::string, double>> metrics = {};  // of the last evaluation; see metrics_told_max
  std::vector<StepMark> marks = {};                          // of late steps, one after the other
  // To the bit: a loss that is NaN is the same as itself.
  friend bool operator==(const ProcessStats& a, const ProcessStats& b);
};

// Of one heartbeat; more are left out, longer names are cut.
inline constexpr std::size_t metrics_told_max = 8;
inline constexpr std::size_t metric_name_limit_bytes = 32;

// "62 us", "4.17 ms", "1.2 s".
std::string time_text(double seconds);

// How long the threads that this process has now have been ready to run without a core, together: a step
// waits for those that read and compute, too. 0 where the system does not say.
std::uint64_t core_wait_us();
// Memory and times of this process, as the system knows them.
void read_process_load(ProcessStats& stats);

// What was spent in a while, and how many steps were done in it.
struct Pace {
  std::uint64_t window_us = 0;  // 0: nothing is known
  std::uint64_t steps = 0;
  ProcessCounters spent = {};

  std::optional<double> step_seconds() const;
  std::optional<double> samples_per_second() const;
  std::optional<double> cores() const;        // that its threads kept busy
  double share(std::uint64_t time_us) const;  // of the while
  friend bool operator==(const Pace&, const Pace&) = default;
};

// Pace over the last ten seconds, or ten steps where those take longer, up to five minutes. A pure value.
class PaceMeter {
 public:
  void add(TimePoint now, std::uint64_t step, const ProcessCounters& counters);
  // Another life or epoch of the process begins.
  void clear() { samples_.clear(); }
  Pace pace() const;

 private:
  struct Sample {
    TimePoint time;
    std::uint64_t step = 0;
    ProcessCounters counters = {};
  };
  std::deque<Sample> samples_;
};

// ---- Slow ranks: slow_watch.h finds them
// --------------------------------------------------------------------

// A WorkPhase of its main thread; other processes that have the cores of its host; the way to its host.
enum class SlowCause : std::uint8_t {
  computing,
  reading_data,
  saving,
  evaluating,
  script,
  host_load,
  network,
};
inline constexpr SlowCause last_slow_cause = SlowCause::network;
// "computing", ..., "host_load", "network": for programs.
std::string_view slow_cause_name(SlowCause cause);

struct SlowRank {
  std::uint32_t rank = 0;
  SlowCause cause = SlowCause::computing;
  // Of one step: what the cause takes this rank, what it takes the others (their median), and the step.
  // Of `network`: how long an answer to it takes.
  std::uint64_t time_us = 0;
  std::uint64_t usual_us = 0;
  std::uint64_t step_us = 0;
  friend bool operator==(const SlowRank&, const SlowRank&) = default;
};
// "rank 3 holds up the others in each step (0.4 s): reading data takes it 0.25 s, and the others 0.02 s".
std::string to_string(const SlowRank& slow);

}  // namespace muster::cluster
