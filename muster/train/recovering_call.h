// One call of a job that recovers: train, fit, a hand-written loop. All workers make it together. When one of
// them was lost, all say where they stand, and go on together: with what the survivors have in memory, or
// from a point that every worker has or is given (checkpoint::decide).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/base.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/train/handover.h"
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
  ~RecoveringCall();
  // The one that is under way in this process, or null.
  static RecoveringCall* current();

  // Collective, between two calls: until every worker has the end of the last call. This worker gives what
  // it has. An error where the others are past this place of the script.
  static Result<> meet(Recovery& recovery);

  std::uint64_t number() const { return number_; }
  Recovery& recovery() { return recovery_; }
  // Whether a worker is past this call: then its end is all that can be had of it.
  bool is_finished() const { return recovery_.finished_calls() > number_; }

  // What this worker has in memory: nothing of use until it is said.
  struct Memory {
    checkpoint::Standing::State state = checkpoint::Standing::State::spoilt;
    std::uint64_t steps = 0;     // and what else was committed before it: each commit() is one
    std::string spoilt_by = {};  // for people, where it was of use before
  };
  void set_memory(const Memory& memory) { in_memory_ = memory; }
  // How others may go on from it.
  struct Sharing {
    std::uint32_t stage = 0;                                  // only those of the same stage
    std::function<Result<std::string>()> own_state = {};      // what in it is this worker's own
    std::function<Result<checkpoint::Point>()> capture = {};  // it as a point
  };
  void set_sharing(Sharing sharing) {
    sharing_ = std::move(sharing);
    recovery_.calls().stage = sharing_.stage;
  }
  // What this worker's script has written itself, as a hash (0: nothing to compare): the next exchange
  // compares it with the others', and tells `compared`.
  void note_written(std::uint64_t hash, std::function<void(bool are_equal)> compared) {
    written_ = hash;
    compared_ = std::move(compared);
  }
  // All workers were seen to train the same parameters, in a loop by hand.
  void note_equal_parameters() { has_equal_parameters_ = true; }
  bool has_equal_parameters() const { return has_equal_parameters_; }

  struct Start {
    bool finished = false;                        // see is_finished()
    bool is_live = false;                         // what is in memory is where all go on
    std::optional<checkpoint::Point> point = {};  // nothing, and not live: the beginning, as it is in memory
    bool is_of_another = false;                   // the point
    std::optional<checkpoint::Point> own = {};    // then: the newest that this worker itself has
  };
  // Collective: where all go on. Damaged points are put aside for those before.
  Result<Start> agree();

  // Collective: this worker has all that the step behind its memory needs of others. Returns when all have,
  // or when a worker was lost and it is decided that the step counts: then its memory is about to change. An
  // error when it does not count.
  Result<> commit();
  // Collective, behind `steps` steps: each tells what it has on its disk. A part of commit(); where steps are
  // not committed it comes with each save.
  Result<> exchange(std::uint64_t steps);
  // Whether all have to agree before anything else is done together.
  bool is_rendezvous_due() const { return is_rendezvous_due_; }
  // After an attempt that has failed: whether another one is to be made, in the next epoch if one was lost.
  Result<bool> tries_again(const Error& error);

  // Sets the parts to what they were at the point. If the script has changed since, the error says so.
  Result<> restore(const checkpoint::Point& point, const TrainingParts& parts,
                   StateOwner owner = StateOwner::this_worker) const;

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
  checkpoint::WriteThrottle& files_throttle() { return files_throttle_; }
  // One line for `muster verify`.
  void note_step(std::uint64_t step, std::uint64_t hash);
  // Collective: `end` is kept, and the call is over once every worker's is, or another worker has one for it.
  // An end that a disk does not take is an error in the log, and is tried again behind later points; until
  // then the call is not over. `result` is for those who return and need only that.
  Result<> finish(std::optional<checkpoint::Point> end, std::string result);

  struct End {
    std::optional<checkpoint::Point> point = {};  // nothing: a later call has all that was in it
    std::string result = {};
    bool is_of_another = false;
  };
  // Of a call that others have finished; one that this worker lacks is taken from another one.
  Result<End> end();

 private:
  RecoveringCall(Recovery& recovery, checkpoint::RunStore& store, std::string kind, std::uint64_t number)
      : recovery_(recovery),
        store_(store),
        kind_(std::move(kind)),
        number_(number),
        saver_(recovery.make_saver(store)),
        files_throttle_(checkpoint::WriteThrottle::beside(recovery.local_size()), recovery.clock()),
        newest_{.call = number} {}

  using Resumption = checkpoint::Resumption;
  using PendingEnd = Recovery::PendingEnd;
  using Words = Recovery::Words;
  struct KnownEnd {
    Handover had = {};
    bool is_of_another = false;
  };
  bool holds(const checkpoint::PointId& id) const;
  bool has_end() const;
  bool can_share_end() const;
  const PendingEnd* pending_end(std::uint64_t call) const;
  bool has_end_at_hand() const;
  bool can_give_end(std::uint64_t call) const;
  std::uint64_t gives_ends_from() const;
  bool knows_common() const;
  bool may_have_lost() const;
  std::string own_state() const;
  checkpoint::Standing standing(const Memory& memory) const;
  Result<> wait_for_those_behind();
  Result<std::vector<checkpoint::Standing>> standings(const Memory& memory);
  bool disk_counts(const Memory& memory) const;
  Result<Resumption> ask(const Memory& memory);
  Result<Resumption> ask_those_here(const Memory& mine);
  Words steps_on_disk() const;
  void note_common(const std::vector<Words>& rows);
  void compare_written(const std::vector<Words>& rows);
  // Each gives what others take from it, then takes what it lacks; an answer only where it lacks something.
  Result<std::optional<Handover>> hand_over(const Resumption& next, const Handover& mine);
  Result<bool> all_have(bool mine);
  Result<std::optional<Start>> go_on_live(const Resumption& next);
  Result<std::optional<Start>> go_to_point(const Resumption& next);
  Result<bool> take_ends(const Resumption& next);
  Handover on_disk(const checkpoint::PointId& id);
  Handover end_at_hand(std::uint64_t call);
  Result<KnownEnd> find_end();
  void keep_end_of_another(const End& end);
  std::optional<checkpoint::Point> newest_own() const;
  Error lost(const std::string& reason) const;
  bool keep_end(checkpoint::Point end, const std::string& result);
  void thin_pending_ends();
  void retry_pending_ends();
  bool owes_end() const;
  void report_finished(const std::vector<Words>& rows);
  bool journal(std::uint64_t call, const std::string& kind, std::string result);
  void say_resuming(std::uint64_t step);

  Recovery& recovery_;
  checkpoint::RunStore& store_;
  std::string kind_;
  std::uint64_t number_;
  SnapshotMemory memory_;
  std::unique_ptr<checkpoint::Saver> saver_;
  checkpoint::WriteThrottle files_throttle_;
  Memory in_memory_;
  Sharing sharing_;
  std::optional<Resumption> decided_;  // and not yet done
  std::optional<KnownEnd> known_end_;  // that all have agreed on, or that another worker has given
  bool is_end_agreed_ = false;         // all have the end, or have been given it
  bool is_rendezvous_due_ = false;
  bool has_equal_parameters_ = false;
  std::uint64_t written_ = 0;
  std::function<void(bool)> compared_;  // null: nothing is compared, or it was
  checkpoint::PointId newest_;          // that was begun to be saved, or that all have gone on from
};

}  // namespace muster::train
