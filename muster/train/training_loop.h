// Private to train: the loop over epochs and steps behind Model::train and muster.recoverable (ADR 26).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "muster/train/batches.h"
#include "muster/train/recovering_call.h"
#include "muster/train/recovery_point.h"
#include "muster/train/resume.h"
#include "muster/train/written_parameters.h"

namespace muster::train {

class TrainingLoop;

// What a training adds to the loop.
class LoopHooks {
 public:
  // Of which counters are meant: now, or before the step under way.
  enum class Moment { now, before_step };

  LoopHooks() = default;
  LoopHooks(const LoopHooks&) = delete;
  LoopHooks& operator=(const LoopHooks&) = delete;
  virtual ~LoopHooks() = default;

  virtual TrainingParts parts() const = 0;
  // The networks and optimizers whose parameters these are.
  virtual std::vector<nn::CellPtr> cells() const { return {}; }
  virtual bool stop_requested() const = 0;
  virtual void set_stop(bool requested) = 0;

  // Of an attempt: what the one before has begun on other threads is done.
  virtual void settle() {}
  // Of an attempt, before anything is restored: checks, and TrainingLoop::read().
  virtual Result<> open(TrainingLoop& loop) = 0;
  // Where a training that has not begun in this job goes on, as the script has asked; nothing: at its start.
  virtual Result<std::optional<Resumption>> resume() { return std::nullopt; }
  // And behind it, before the first item.
  virtual Result<> check(Batches&) { return {}; }
  // Once in a process; `in_epoch`: goes on in the middle of one.
  virtual Result<> begin(bool in_epoch) {
    (void)in_epoch;
    return {};
  }

  // Counters of its own: a step is about to be read; as a point holds them; back to a point, or to before the
  // step, where the loop is already.
  virtual void remember() {}
  virtual void describe(TrainingPosition& position, Moment moment) const { (void)position, (void)moment; }
  virtual Result<> take(const TrainingPosition&) { return {}; }
  virtual void take_back() {}
  // What all have committed beside the steps, behind so many epochs: evaluations that all make together.
  virtual std::int64_t commits_behind(std::int64_t epochs) const {
    (void)epochs;
    return 0;
  }
  // It has gone on with what another number of workers had saved behind its last step, which has another
  // number now.
  virtual void note_regrouped() {}
  // A point has been gone back to.
  virtual void note_resumed() {}

  // The end, before it is saved; and what a process that returns is told of the call.
  virtual void note_end(const checkpoint::Point&) {}
  virtual Result<std::string> result() { return "{}"; }
};

// Owns where the training is (epoch, step, place in the data, random numbers), the attempts of a job that
// recovers, and its points. Where the job does not recover it is just the loops. The steps are made by who
// calls next(): a Model with its callbacks, or the body of a loop that is written by hand.
//
// Threads: main.
class TrainingLoop {
 public:
  struct Options {
    std::int64_t epochs = 1;
    std::int64_t save_steps = 100;  // between recovery points
    std::int64_t group_steps = 0;   // an epoch has so many, from any pass over the data; 0: those of one pass
    std::uint64_t* passes = nullptr;  // over the dataset, borrowed
    Recovery* recovery = nullptr;     // null: as the session says
  };
  enum class Event { epoch_begin, step, epoch_end, end, done };

  // `hooks` are borrowed. A loop within a step of another one is a part of that step, and recovers nothing.
  TrainingLoop(LoopHooks& hooks, const Options& options);
  TrainingLoop(const TrainingLoop&) = delete;
  TrainingLoop& operator=(const TrainingLoop&) = delete;

  // What comes now. The caller does what belongs to an event before it asks for the next one, and calls
  // complete_step() when a step counts. After a loss of a process it goes on from where all go on.
  Result<Event> next();
  // What the caller did at an event has failed with `error`: next() makes another attempt. The error itself
  // where there is none.
  Result<> recover(const Error& error);
  // The step under way is made again, from `start` where all have agreed on it already.
  Result<> go_back(std::optional<RecoveringCall::Start> start);

  // Of Event::step. take_item() once.
  data::Item take_item() { return *std::exchange(item_, std::nullopt); }
  // What the next step of this epoch will have, null where that is not known. It stays the next one.
  Result<const data::Item*> look_ahead() { return batches_->look_ahead(); }
  // Whether an epoch begins that was begun before, in this process or in another one.
  bool is_resumed() const { return is_resumed_; }
  // Epochs done; steps done in this one, and in all, counted from what start_at() says.
  std::int64_t epoch() const { return epoch_; }
  std::int64_t step_in_epoch() const { return step_; }
  std::int64_t steps() const { return steps_; }
  bool is_grouped() const { return options_.group_steps > 0; }

  // From open(): what is read, and where an attempt begins that goes back to nothing.
  Batches& read(Batches batches);
  bool is_open() const { return batches_.has_value(); }
  void start_at(std::int64_t epoch, std::int64_t steps);

  bool recovers() const { return recovery_ != nullptr; }
  Recovery* recovery() const { return recovery_; }
  // Of the steps so far; null where nothing is recovered.
  WrittenParameters* written() { return written_ ? &*written_ : nullptr; }
  // Null where nothing is recovered, and behind the end.
  RecoveringCall* call() const { return call_.get(); }
  // The parameters are those of before the step, or of the end of the epoch, until all have what they need
  // for it: another worker may go on from them. An error where all have to agree first.
  Result<> offer_memory();
  void complete_step();
  bool is_save_due() const { return steps_ - saved_ >= options_.save_steps; }
  // A point behind the step that is complete, and one behind the last epoch.
  Result<checkpoint::Point> point_of_step();
  Result<checkpoint::Point> point_of_end();
  void save(checkpoint::Point point);

 private:
  enum class Phase { before_epoch, in_epoch, behind_epoch, behind_last, over };
  struct Place {
    std::int64_t epoch = 0;
    std::int64_t step = 0;
    std::int64_t steps = 0;
    bool in_epoch = false;
    bool stop = false;
    std::uint64_t passes = 0;
    DataPosition data = {};
    std::uint64_t runs = 0;
  };

  Result<Event> advance();
  Result<> get_ready();
  Result<RecoveringCall::Start> agree();
  Result<> share();
  Result<> save_start();
  Result<> check_epochs(const checkpoint::Point& point) const;
  Result<> go_back_to(const RecoveringCall::Start& start);
  Result<> resume();
  Result<> take_end();
  Result<> take(const TrainingPosition& position, StateOwner owner);
  void take_place(const Place& place);
  TrainingParts parts() const;
  Result<bool> read_item();
  void begin_step();
  Result<> finish();
  Place place(bool in_epoch) const;
  Result<checkpoint::Point> point_at(const checkpoint::PointId& id, const Place& place,
                                     LoopHooks::Moment moment);
  Result<checkpoint::Point> point_in_memory();

  LoopHooks& hooks_;
  Options options_;
  Recovery* recovery_ = nullptr;
  std::unique_ptr<RecoveringCall> call_;
  std::optional<WrittenParameters> written_;
  std::optional<Batches> batches_;
  std::optional<data::Item> item_;
  Phase phase_ = Phase::before_epoch;
  bool is_resumed_ = false;      // the epoch that begins next is under way
  bool steps_are_made_ = false;  // and all of its steps are made
  std::int64_t epoch_ = 0;
  std::int64_t step_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t saved_ = 0;                      // steps when the last point was saved
  Place before_;                                // the step under way, or the end of the epoch
  std::optional<RecoveringCall::Start> start_;  // that all have agreed on, and that is not gone to yet
  bool is_ready_ = false;                       // all go on from the same place
  bool is_fresh_ = true;                        // nothing has changed since the begin of the call
  bool has_begun_ = false;                      // LoopHooks::begin() was called
};

}  // namespace muster::train
