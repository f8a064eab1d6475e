#include "muster/train/training_loop.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "muster/train/activity_scope.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/regrouping.h"
#include "muster/train/run_context.h"

namespace muster::train {
namespace {

// Beside the section `training`, by which runs are compared: more epochs are no difference.
constexpr const char* epochs_section = "epochs";

}  // namespace

TrainingLoop::TrainingLoop(LoopHooks& hooks, const Options& options) : hooks_(hooks), options_(options) {
  recovery_ = options_.recovery != nullptr ? options_.recovery : recovery_of_session();
  if (recovery_ != nullptr && recovery_->calls().inside) recovery_ = nullptr;
}

// ---- Epochs and steps -------------------------------------------------------------------------------------

Result<TrainingLoop::Event> TrainingLoop::next() {
  while (true) {
    Result<Event> event = advance();
    if (event) return event;
    MUSTER_TRY_VOID(recover(event.error()));
  }
}

Result<TrainingLoop::Event> TrainingLoop::advance() {
  if (!is_ready_) MUSTER_TRY_VOID(get_ready());
  if (phase_ == Phase::behind_epoch) {
    ++epoch_;
    step_ = 0;
    phase_ = Phase::before_epoch;
  }
  switch (phase_) {
    case Phase::before_epoch:
      if (epoch_ >= options_.epochs || (hooks_.stop_requested() && !is_resumed_)) {
        phase_ = Phase::behind_last;
        return Event::end;
      }
      phase_ = Phase::in_epoch;
      return Event::epoch_begin;
    case Phase::in_epoch: {
      is_resumed_ = false;
      MUSTER_TRY(const bool is_there, read_item());
      if (is_there)
        begin_step();
      else
        phase_ = Phase::behind_epoch;
      return is_there ? Event::step : Event::epoch_end;
    }
    case Phase::behind_last:
      MUSTER_TRY_VOID(finish());
      phase_ = Phase::over;
      return Event::done;
    case Phase::behind_epoch:
    case Phase::over:
      break;
  }
  return Event::done;
}

// A group of steps has no place at which it could stop.
Result<bool> TrainingLoop::read_item() {
  if (std::exchange(steps_are_made_, false)) return false;  // back at the end of an epoch: `before_` is there
  before_ = place(true);
  hooks_.remember();
  if (is_grouped() ? step_ >= options_.group_steps : hooks_.stop_requested()) return false;
  const ActivityScope reading(cluster::WorkPhase::reading_data);
  if (is_grouped()) {
    MUSTER_TRY(item_, batches_->next_of_any_pass());
  } else {
    MUSTER_TRY(item_, batches_->next());
  }
  return item_.has_value();
}

// Simulated workers of one process do not watch.
void TrainingLoop::begin_step() {
  if (recovery_ == nullptr || options_.recovery != nullptr) return;
  if (!written_) written_.emplace(hooks_.parts().parameters, hooks_.cells());
  call_->note_written(written_->hash(steps_), [this](bool are_equal) { written_->note_compared(are_equal); });
  written_->watch();
}

TrainingParts TrainingLoop::parts() const {
  TrainingParts parts = hooks_.parts();
  if (written_ && parts.own.empty()) parts.own = written_->own();
  return parts;
}

void TrainingLoop::complete_step() {
  if (written_) written_->rest();
  ++step_;
  ++steps_;
  if (call_ != nullptr) call_->set_memory({});
}

Batches& TrainingLoop::read(Batches batches) {
  Batches& reading = batches_.emplace(std::move(batches));
  if (const auto folder = real_environment().get("MUSTER_SAMPLE_LOG"); folder && !folder->empty()) {
    auto log = checkpoint::SampleLog::open(*folder, state_owner());
    if (!log) log::error(fmt::format("no log of samples is written: {}", log.error().message));
    if (log) reading.log_samples(*std::move(log));
  }
  return reading;
}

void TrainingLoop::start_at(std::int64_t epoch, std::int64_t steps) {
  epoch_ = epoch;
  step_ = 0;
  steps_ = saved_ = steps;
  phase_ = Phase::before_epoch;
  is_resumed_ = steps_are_made_ = false;
}

// ---- Attempts ---------------------------------------------------------------------------------------------

Result<> TrainingLoop::recover(const Error& error) {
  if (written_) written_->rest();
  if (call_ == nullptr) return fail(error);
  MUSTER_TRY(const bool again, call_->tries_again(error));
  if (!again) return fail(error);
  is_ready_ = false;
  return {};
}

Result<> TrainingLoop::go_back(std::optional<RecoveringCall::Start> start) {
  if (written_) written_->rest();
  call_->set_memory({});
  is_ready_ = false;
  start_ = std::move(start);
  return start_ ? Result<>{} : recovery_->next_epoch();
}

Result<> TrainingLoop::get_ready() {
  RecoveringCall::Start start;
  if (recovery_ != nullptr) {
    if (call_ == nullptr) {
      MUSTER_TRY(call_, RecoveringCall::begin(*recovery_));
    }
    MUSTER_TRY_VOID(share());
    batches_.reset();
    hooks_.settle();
    MUSTER_TRY(start, agree());
    if (start.finished) return take_end();
  }
  MUSTER_TRY_VOID(hooks_.open(*this));
  if (start.is_live) {
    take_place(before_);
    hooks_.take_back();
  }
  if (start.point)
    MUSTER_TRY_VOID(go_back_to(start));
  else if (is_fresh_ && !start.is_live)
    MUSTER_TRY_VOID(resume());
  MUSTER_TRY_VOID(hooks_.check(*batches_));
  if (!std::exchange(has_begun_, true)) MUSTER_TRY_VOID(hooks_.begin(false));
  MUSTER_TRY_VOID(save_start());
  is_ready_ = true;
  return {};
}

// Anew for each attempt: which stage this worker has may have changed.
Result<> TrainingLoop::share() {
  MUSTER_TRY(const PipelineLayout now, pipeline_layout());
  call_->set_sharing({.stage = now.stage,
                      .own_state = [this] { return own_state_in(parts()); },
                      .capture = [this] { return point_in_memory(); }});
  return {};
}

Result<RecoveringCall::Start> TrainingLoop::agree() {
  if (start_) return *std::exchange(start_, std::nullopt);
  if (call_->is_finished()) return RecoveringCall::Start{.finished = true};
  if (is_fresh_) call_->set_memory({.state = checkpoint::Standing::State::fresh});
  return call_->agree();
}

// Once in a process, unless it goes on from a point.
Result<> TrainingLoop::save_start() {
  if (!std::exchange(is_fresh_, false) || call_ == nullptr) return {};
  call_->set_memory({});
  MUSTER_TRY(checkpoint::Point start,
             point_at(call_->start_id(), place(is_resumed_), LoopHooks::Moment::now));
  call_->save(std::move(start));
  return {};
}

Result<> TrainingLoop::resume() {
  MUSTER_TRY(std::optional<Resumption> found, hooks_.resume());
  if (!found) return {};
  const bool is_regrouped = found->owner.world_size != state_owner().world_size;
  const StateOwner owner = is_regrouped ? StateOwner::another_worker : StateOwner::this_worker;
  if (is_regrouped) {
    MUSTER_TRY(const DataPosition before, data_position_in(found->point));
    batches_->log_regrouping(found->owner.world_size, before);
    MUSTER_TRY_VOID(
        regroup(*found, batches_->dataset(), is_grouped() ? std::nullopt : hooks_.parts().batches));
  }
  MUSTER_TRY(const TrainingPosition position, position_in(found->point));
  MUSTER_TRY_VOID(take_seeds(position.values, found->path));
  MUSTER_TRY_VOID(take(position, owner));
  if (!std::exchange(has_begun_, true)) MUSTER_TRY_VOID(hooks_.begin(is_resumed_));
  MUSTER_TRY_VOID(restore(found->point, hooks_.parts(), owner).map_error([&](Error error) {
    return unfitting(std::move(error), found->path);
  }));
  MUSTER_TRY_VOID(take(position, owner));
  if (is_regrouped) hooks_.note_regrouped();
  return {};
}

// A script that counts the epochs that are left, by checkpoints of its own, would end before the other
// workers.
Result<> TrainingLoop::check_epochs(const checkpoint::Point& point) const {
  const auto found = point.state.find(epochs_section);
  if (found == point.state.end()) return {};  // of an older version
  MUSTER_TRY(const StateValues values, StateValues::from_json(found->second));
  MUSTER_TRY(const std::int64_t epochs, values.integer("epochs"));
  if (options_.epochs >= epochs) return {};
  return fail(
      Code::invalid_argument,
      fmt::format(
          "the training that goes on has {0} epochs, and the script asks for {1} now: recovery goes on "
          "by itself where it was, so leave out what looks for checkpoints in a job that recovers, and "
          "ask for {0} epochs again; MUSTER_FRESH=1 begins anew",
          epochs, options_.epochs));
}

// What the training begins in a new process comes first, and is then set to what it was.
Result<> TrainingLoop::go_back_to(const RecoveringCall::Start& start) {
  MUSTER_TRY(const TrainingPosition position, position_in(*start.point));
  MUSTER_TRY_VOID(check_epochs(*start.point));
  const StateOwner owner = start.is_of_another ? StateOwner::another_worker : StateOwner::this_worker;
  MUSTER_TRY_VOID(take(position, owner));
  if (!std::exchange(has_begun_, true)) MUSTER_TRY_VOID(hooks_.begin(is_resumed_));
  is_fresh_ = false;
  if (start.own) MUSTER_TRY_VOID(restore_states(*start.own, hooks_.parts()));
  MUSTER_TRY_VOID(call_->restore(*start.point, hooks_.parts(), owner));
  MUSTER_TRY_VOID(take(position, owner));
  hooks_.note_resumed();
  return {};
}

// The call is behind the others: what it has changed is all that counts. Nothing is said of states where the
// one who kept the end died before its record.
Result<> TrainingLoop::take_end() {
  MUSTER_TRY(const RecoveringCall::End end, call_->end());
  if (end.point) {
    MUSTER_TRY(const TrainingPosition position, position_in(*end.point));
    const StateOwner owner = end.is_of_another ? StateOwner::another_worker : StateOwner::this_worker;
    MUSTER_TRY_VOID(call_->restore(*end.point, hooks_.parts(), owner));
    MUSTER_TRY_VOID(take(position, owner));
  } else if (!end.is_of_another && !end.result.empty()) {
    MUSTER_TRY_VOID(load_states(end.result, hooks_.parts()));
  }
  phase_ = Phase::over;
  is_ready_ = true;
  call_.reset();
  return {};
}

Result<> TrainingLoop::offer_memory() {
  call_->set_memory(
      {.state = checkpoint::Standing::State::live,
       .steps = static_cast<std::uint64_t>(before_.steps + hooks_.commits_behind(before_.epoch))});
  if (!call_->is_rendezvous_due()) return {};
  return fail(Code::peer_lost, "a worker was lost and has come back");
}

Result<> TrainingLoop::finish() {
  if (call_ == nullptr) return {};
  const ActivityScope saving(cluster::WorkPhase::saving);
  MUSTER_TRY(checkpoint::Point end, point_at(call_->end_id(), place(false), LoopHooks::Moment::now));
  hooks_.note_end(end);
  if (call_->is_rendezvous_due()) {
    // Who has come back takes the end.
    call_->save(std::move(end));
    return fail(Code::peer_lost, "a worker was lost and has come back");
  }
  MUSTER_TRY(std::string result, hooks_.result());
  MUSTER_TRY_VOID(call_->finish(std::move(end), std::move(result)));
  call_.reset();
  return {};
}

// ---- Points -----------------------------------------------------------------------------------------------

TrainingLoop::Place TrainingLoop::place(bool in_epoch) const {
  return {.epoch = epoch_,
          .step = step_,
          .steps = steps_,
          .in_epoch = in_epoch,
          .stop = hooks_.stop_requested(),
          .passes = *options_.passes,
          .data = batches_->position(),
          .runs = counted_runs()};
}

Result<checkpoint::Point> TrainingLoop::point_of_step() {
  const auto steps = static_cast<std::uint64_t>(steps_);
  const checkpoint::PointId id =
      call_ != nullptr ? call_->step_id(steps)
                       : checkpoint::PointId{.moment = checkpoint::PointId::Moment::step, .step = steps};
  return point_at(id, place(true), LoopHooks::Moment::now);
}

Result<checkpoint::Point> TrainingLoop::point_of_end() {
  return point_at({.moment = checkpoint::PointId::Moment::step, .step = static_cast<std::uint64_t>(steps_)},
                  place(false), LoopHooks::Moment::now);
}

void TrainingLoop::save(checkpoint::Point point) {
  saved_ = steps_;
  call_->save(std::move(point));
}

// For a worker that lacks it. The body of a loop goes on drawing random numbers where it is.
Result<checkpoint::Point> TrainingLoop::point_in_memory() {
  const std::uint64_t now = counted_runs();
  count_runs_from(before_.runs);
  auto point = point_at(call_->step_id(static_cast<std::uint64_t>(before_.steps)), before_,
                        LoopHooks::Moment::before_step);
  count_runs_from(now);
  return point;
}

Result<checkpoint::Point> TrainingLoop::point_at(const checkpoint::PointId& id, const Place& place,
                                                 LoopHooks::Moment moment) {
  TrainingPosition position;
  position.values.set("epochs_done", place.epoch)
      .set("steps_in_epoch", place.step)
      .set("steps", place.steps)
      .set("in_epoch", place.in_epoch)
      .set("stop", place.stop)
      .set("passes", static_cast<std::int64_t>(place.passes))
      .set("pass", static_cast<std::int64_t>(place.data.pass))
      .set("items", static_cast<std::int64_t>(place.data.items));
  put_rows_before(place.data, position.values);
  if (batches_) put_rows(batches_->dataset(), position.values);
  put_seeds(position.values);
  if (place.data.contents) position.values.set("contents", static_cast<std::int64_t>(*place.data.contents));
  hooks_.describe(position, moment);
  SnapshotMemory once;
  MUSTER_TRY(checkpoint::Point point,
             capture(id, parts(), position, call_ != nullptr ? call_->memory() : once));
  point.state[epochs_section] = StateValues().set("epochs", options_.epochs).to_json();
  return point;
}

Result<> TrainingLoop::take(const TrainingPosition& position, StateOwner owner) {
  const StateValues& values = position.values;
  Place place{.runs = counted_runs()};
  MUSTER_TRY(place.epoch, values.integer("epochs_done"));
  MUSTER_TRY(place.step, values.integer("steps_in_epoch"));
  MUSTER_TRY(place.steps, values.integer("steps"));
  MUSTER_TRY(place.in_epoch, values.flag("in_epoch"));
  MUSTER_TRY(place.stop, values.flag("stop"));
  MUSTER_TRY(const std::int64_t passes, values.integer("passes"));
  MUSTER_TRY(const std::int64_t pass, values.integer("pass"));
  MUSTER_TRY(const std::int64_t items, values.integer("items"));
  place.passes = static_cast<std::uint64_t>(passes);
  MUSTER_TRY(place.data, rows_before_in(values));
  place.data.pass = static_cast<std::uint64_t>(pass);
  place.data.items = static_cast<std::uint64_t>(items);
  if (owner == StateOwner::this_worker && values.has("contents")) {  // another worker's items are others
    MUSTER_TRY(const std::int64_t contents, values.integer("contents"));
    place.data.contents = static_cast<std::uint64_t>(contents);
  }
  take_place(place);
  MUSTER_TRY_VOID(hooks_.take(position));
  before_ = place;
  hooks_.remember();
  return {};
}

void TrainingLoop::take_place(const Place& place) {
  epoch_ = place.epoch;
  step_ = place.step;
  steps_ = saved_ = place.steps;
  hooks_.set_stop(place.stop);
  *options_.passes = place.passes;
  count_runs_from(place.runs);
  phase_ = Phase::before_epoch;
  is_resumed_ = place.in_epoch;
  steps_are_made_ = false;
  if (!batches_) return;
  // Behind the last step of an epoch comes the next pass, so that no item of this one is asked for.
  const auto items = static_cast<std::int64_t>(place.data.items);
  const bool pass_is_over = is_resumed_ && !is_grouped() && items == hooks_.parts().batches;
  steps_are_made_ = pass_is_over || (is_resumed_ && is_grouped() && step_ >= options_.group_steps);
  batches_->begin_at(pass_is_over ? DataPosition{.pass = place.data.pass + 1} : place.data);
}

}  // namespace muster::train
