// One call of a job that recovers: train, fit, a hand-written loop. All workers make it together, and go on
// from a point that all of them hold when one of them was lost.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "muster/base/base.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/train/recovery.h"
#include "muster/train/recovery_point.h"
#include "muster/train/snapshot_memory.h"

namespace muster::train {

class RecoveringCall {
 public:
  // Numbers the call. One at a time.
  static Result<std::unique_ptr<RecoveringCall>> begin(Recovery& recovery, std::string kind = "train");
  RecoveringCall(const RecoveringCall&) = delete;
  RecoveringCall& operator=(const RecoveringCall&) = delete;
  ~RecoveringCall() { recovery_.set_inside(false); }

  std::uint64_t number() const { return number_; }
  Recovery& recovery() { return recovery_; }
  // Whether a worker is past this call: then its end is all that can be had of it.
  bool is_finished() const { return recovery_.finished_calls() > number_; }

  struct Start {
    bool finished = false;                        // see is_finished()
    std::optional<checkpoint::Point> point = {};  // nothing: the beginning, as it is in memory
  };
  // Collective: the newest point that all workers hold whole; damaged ones are put aside for those before.
  // `fresh`: nothing has been changed in this process since the call began.
  Result<Start> agree(bool fresh);

  // Sets the parts to what they were at the point. If the script has changed since, the error says so.
  Result<> restore(const checkpoint::Point& point, const TrainingParts& parts) const;

  checkpoint::PointId start_id() const { return {.call = number_}; }
  checkpoint::PointId step_id(std::uint64_t step) const {
    return {.call = number_, .moment = checkpoint::PointId::Moment::step, .step = step};
  }
  checkpoint::PointId end_id() const { return {.call = number_, .moment = checkpoint::PointId::Moment::end}; }

  // Where the tensors of points are made.
  SnapshotMemory& memory() { return memory_; }
  // On another thread; a failure is said loudly and costs nothing but this point.
  void save(checkpoint::Point point);
  // The step is done.
  void mark_step(std::uint64_t step) { recovery_.mark_step({.call = number_, .step = step}); }
  // Of files that are written beside points.
  checkpoint::Pace& files_pace() { return files_pace_; }
  // One line for `muster verify`.
  void note_step(std::uint64_t step, std::uint64_t hash);
  // Collective: `end` is on every worker's disk, and the call is finished. `result` is for those who return
  // and need only that.
  Result<> finish(std::optional<checkpoint::Point> end, std::string result);

  struct End {
    std::optional<checkpoint::Point> point = {};  // nothing: a later call has all that was in it
    std::string result = {};
  };
  // Of a call that others have finished.
  Result<End> end();

 private:
  RecoveringCall(Recovery& recovery, checkpoint::RunStore& store, std::string kind, std::uint64_t number)
      : recovery_(recovery),
        store_(store),
        kind_(std::move(kind)),
        number_(number),
        saver_(store, checkpoint::Pace::beside(recovery.local_size())),
        files_pace_(checkpoint::Pace::beside(recovery.local_size())) {}

  struct Agreed {
    bool finished = false;
    checkpoint::PointId id = {};
  };
  Result<Agreed> newest_common(bool fresh);
  bool holds(const checkpoint::PointId& id) const;
  void journal(std::string result);
  void say_resuming(std::uint64_t step);

  Recovery& recovery_;
  checkpoint::RunStore& store_;
  std::string kind_;
  std::uint64_t number_;
  SnapshotMemory memory_;
  checkpoint::BackgroundSaver saver_;
  checkpoint::Pace files_pace_;
};

}  // namespace muster::train
