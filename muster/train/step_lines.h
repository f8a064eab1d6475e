// Private to train: time lines of single steps, in the folder of the run, for the page.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/cluster/cluster.h"
#include "muster/graph/cost/step_parts.h"
#include "muster/graph/graph.h"
#include "muster/net/net.h"
#include "muster/telemetry/telemetry.h"

namespace muster::train {

// Once a second, and of the first steps more often, one step is recorded: what the main thread does, and each
// call with other workers, with begin and end. Ranks choose the same steps by their numbers. The last ones
// are in timeline/worker_RANK.json (docs/formats/run-folder.md).
class StepLines final : public graph::RunObserver {
 public:
  // The calls are those of that flight recorder.
  StepLines(std::string folder, std::uint32_t rank, std::string flight_path);

  // The main thread has made this step: that of a Model, or what is reduced over the workers.
  void made_step(std::uint64_t step);
  // The main thread now does this.
  void enter(cluster::WorkPhase phase);
  void ran(const Step& step, TimePoint begin, TimePoint end, const Describe& describe) override;
  bool is_recording() const { return is_recording_.load(std::memory_order_relaxed); }

  struct Span {
    std::string_view kind;  // that of a phase, "forward", "backward", "update", "call"
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };
  struct Line {
    std::uint64_t step = 0;
    std::int64_t begin_ns = 0;  // since 1970, as all times here
    std::int64_t end_ns = 0;
    std::vector<Span> phases = {};  // one after the other
    std::vector<Span> parts = {};   // within them: ops of one kind that follow each other
    std::vector<telemetry::FlightRecord> calls = {};
  };

 private:
  // Not in a forked child, which may find the lock taken.
  bool may_lock() const { return is_recording() && net::fork_count() == fork_count_; }
  bool is_due(std::uint64_t step);
  void begin(std::uint64_t step);
  void finish();
  void write();
  std::int64_t wall(TimePoint time) const;
  std::string_view kind_of(const Step& step);

  const std::string folder_;
  const std::uint32_t rank_;
  const std::string flight_path_;
  const std::uint32_t fork_count_ = net::fork_count();
  std::atomic<bool> is_recording_{false};
  std::int64_t second_ = 0;  // in which the last line began
  bool has_warned_ = false;

  std::mutex mutex_;  // of what follows: ops run on any thread
  Line now_;
  std::int64_t wall_offset_ns_ = 0;
  std::deque<Line> kept_;
  std::map<const void*, std::vector<graph::StepPart>> parts_;  // by plan, of this line
};

// From now on, in a job with a run folder (MUSTER_RUN_FOLDER). Main thread.
void keep_step_lines(std::uint32_t rank, const Environment& environment);

}  // namespace muster::train
