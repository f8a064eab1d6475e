// How a training goes on after a loss: attempts, and what their points hold.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <set>
#include <utility>

#include "muster/train/activity_scope.h"
#include "muster/train/context.h"
#include "muster/train/model_training.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/run_context.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

// Between points where no callback asks for them.
constexpr std::int64_t steps_between_points = 100;

void warn_once(std::string key, const std::string& message) {
  static std::set<std::string> said;
  if (said.insert(std::move(key)).second) log::warning(message);
}

}  // namespace

Result<> Model::Training::run_recovering(Recovery& recovery) {
  MUSTER_TRY(call_, RecoveringCall::begin(recovery));
  context_->recovers = true;
  warn_of_callbacks();
  points_are_requested_ = std::any_of(options_.callbacks.begin(), options_.callbacks.end(),
                                      [](const CallbackPtr& c) { return c->requests_points(); });
  if (!points_are_requested_)
    warn_once("points",
              fmt::format("no ModelCheckpoint says how often recovery points are saved: every {} steps",
                          steps_between_points));
  while (true) {
    MUSTER_TRY_VOID(share());
    const Result<> done = call_->is_finished() ? take_end() : attempt();
    if (done) return done;
    MUSTER_TRY(const bool again, call_->tries_again(done.error()));
    if (!again) return done;
  }
}

// An end that this worker lacks is taken from one of its stage, too.
Result<> Model::Training::share() {
  MUSTER_TRY(const PipelineLayout now, pipeline_layout());
  call_->set_sharing({.stage = now.stage,
                      .own_state = [this] { return own_state_in(parts()); },
                      .capture = [this] { return point_in_memory(); }});
  return {};
}

Result<> Model::Training::attempt() {
  batches_.reset();
  wait_for_files();
  if (is_fresh_) call_->set_memory({.state = checkpoint::Standing::State::fresh});
  MUSTER_TRY(const RecoveringCall::Start start, call_->agree());
  if (start.finished) return take_end();
  MUSTER_TRY_VOID(prepare(start));
  MUSTER_TRY_VOID(begin());
  MUSTER_TRY_VOID(run_epochs());
  return finish();
}

// Once in a process.
Result<> Model::Training::begin() {
  if (!std::exchange(has_begun_, true)) MUSTER_TRY_VOID(call(&Callback::on_train_begin));
  if (!std::exchange(is_fresh_, false)) return {};
  call_->set_memory({});
  MUSTER_TRY(checkpoint::Point start, point_of(call_->start_id()));
  call_->save(std::move(start));
  return {};
}

Result<> Model::Training::finish() {
  const ActivityScope saving(cluster::WorkPhase::saving);
  MUSTER_TRY(checkpoint::Point end, point_of(call_->end_id()));
  hand_out(end);
  wait_for_files();
  if (call_->is_rendezvous_due()) {
    // Who has come back takes the end.
    call_->save(std::move(end));
    return fail(Code::peer_lost, "a worker was lost and has come back");
  }
  MUSTER_TRY(std::string states, states_as_text(parts()));
  return call_->finish(std::move(end), std::move(states));
}

// The call is behind the others: what it has changed is all that counts.
Result<> Model::Training::take_end() {
  MUSTER_TRY(const RecoveringCall::End end, call_->end());
  // Nothing is said of states where the one who kept the end died before its record.
  if (!end.point)
    return end.is_of_another || end.result.empty() ? Result<>{} : load_states(end.result, parts());
  MUSTER_TRY(const TrainingPosition position, position_in(*end.point));
  MUSTER_TRY_VOID(call_->restore(*end.point, parts(),
                                 end.is_of_another ? StateOwner::another_worker : StateOwner::this_worker));
  return take_position(position);
}

// A callback finds in a new process what it would have made in the old one at the begin of the training and
// of the epoch, and then its state.
Result<> Model::Training::go_back_to(const RecoveringCall::Start& start) {
  MUSTER_TRY(const TrainingPosition position, position_in(*start.point));
  MUSTER_TRY_VOID(take_position(position));
  if (!std::exchange(has_begun_, true)) {
    MUSTER_TRY_VOID(call(&Callback::on_train_begin));
    if (in_epoch_) MUSTER_TRY_VOID(call(&Callback::on_train_epoch_begin));
  }
  is_fresh_ = step_has_begun_ = false;
  if (start.own) MUSTER_TRY_VOID(restore_states(*start.own, parts()));
  MUSTER_TRY_VOID(call_->restore(*start.point, parts(),
                                 start.is_of_another ? StateOwner::another_worker : StateOwner::this_worker));
  MUSTER_TRY_VOID(take_position(position));
  call_->mark_step(static_cast<std::uint64_t>(step_number_));
  return {};
}

// The step that was under way is made again; nothing has changed since it began.
Result<> Model::Training::go_on_from_memory() {
  std::vector<Tensor> outputs = std::move(context_->net_outputs);
  take_place(before_, std::move(outputs));
  count_runs_from(before_.runs);
  return {};
}

bool Model::Training::makes_steps_together() const {
  const Session* const session = Session::current();
  return session != nullptr && session->world_size() > 1 &&
         context().parallel_mode == ParallelMode::data_parallel;
}

// From here to the updates of the step the parameters are those of before it, and another worker may go on
// from them. The workers of a divided network go back to a point.
Result<> Model::Training::ready_for_loss() {
  commits_ = makes_steps_together() && stages() == nullptr;
  if (!commits_) return {};
  step_has_begun_ = true;
  call_->set_memory(
      {.state = checkpoint::Standing::State::live, .steps = static_cast<std::uint64_t>(before_.step)});
  if (!call_->is_rendezvous_due()) return {};
  return fail(Code::peer_lost, "a worker was lost and has come back");
}

Result<> Model::Training::save_point_if_due() {
  if (call_ == nullptr) return {};
  const bool requested = context_->take_point_request();
  const bool due =
      points_are_requested_ ? requested : context_->cur_step_num - point_step_ >= steps_between_points;
  if (!due && !requested) return {};
  const ActivityScope saving(cluster::WorkPhase::saving);
  in_epoch_ = true;
  auto point = point_of(call_->step_id(static_cast<std::uint64_t>(context_->cur_step_num)));
  in_epoch_ = false;
  if (!point) return fail(point.error());
  hand_out(*point);
  if (!due) return {};
  point_step_ = context_->cur_step_num;
  call_->save(*std::move(point));
  return stages() == nullptr ? Result<>{} : call_->exchange(static_cast<std::uint64_t>(point_step_));
}

// Nobody writes to the tensors of a point any more, so that it and files of callbacks share them.
void Model::Training::hand_out(const checkpoint::Point& point) {
  std::vector<CallbackContext::ParametersUse> uses = context_->take_uses();
  if (uses.empty()) return;
  const auto network = model_.train_network_->parameters();
  const auto count = std::count_if(network.begin(), network.end(),
                                   [](const auto& parameter) { return parameter->absence() == nullptr; });
  std::vector<checkpoint::Entry> parameters(point.tensors.begin(), point.tensors.begin() + count);
  wait_for_files();
  files_ = std::async(std::launch::async, [this, uses = std::move(uses), parameters = std::move(parameters)] {
    const checkpoint::WriteThrottle::Work work(call_->files_throttle(),
                                               uses.size() * checkpoint::size_bytes(parameters));
    for (const auto& use : uses) use(parameters);
  });
}

void Model::Training::wait_for_files() {
  if (!files_.valid()) return;
  const checkpoint::WriteThrottle::Flush flush(call_->files_throttle());
  files_.wait();
}

// ---- What a point holds -----------------------------------------------------------------------------------

TrainingParts Model::Training::parts() const {
  TrainingParts parts{
      .parameters = parameters_, .callbacks = options_.callbacks, .metrics = model_.options_.metrics};
  if (batches_) parts.batches = context_->batch_num;
  parts.is_together = makes_steps_together();
  return parts;
}

Model::Training::Place Model::Training::place() const {
  return {.epoch = context_->cur_epoch_num,
          .step = context_->cur_step_num,
          .epochs_done = epochs_done_,
          .in_epoch = true,
          .stop = context_->stop_requested(),
          .step_number = step_number_,
          .model_steps = model_.steps_,
          .model_passes = model_.passes_,
          .data = batches_->position(),
          .group_steps = group_steps_,
          .runs = counted_runs()};
}

Result<checkpoint::Point> Model::Training::point_of(const checkpoint::PointId& id) {
  Place here = place();
  here.in_epoch = in_epoch_;
  return point_at(id, here);
}

// For a worker that lacks it.
Result<checkpoint::Point> Model::Training::point_in_memory() {
  count_runs_from(before_.runs);
  return point_at(call_->step_id(static_cast<std::uint64_t>(before_.step)), before_);
}

Result<checkpoint::Point> Model::Training::point_at(const checkpoint::PointId& id, const Place& place) {
  TrainingPosition position{.outputs = context_->net_outputs};
  position.values.set("epoch", place.epoch)
      .set("step", place.step)
      .set("epochs_done", place.epochs_done)
      .set("in_epoch", place.in_epoch)
      .set("stop", place.stop)
      .set("step_number", place.step_number)
      .set("model_steps", static_cast<std::int64_t>(place.model_steps))
      .set("model_passes", static_cast<std::int64_t>(place.model_passes))
      .set("pass", static_cast<std::int64_t>(place.data.pass))
      .set("items", static_cast<std::int64_t>(place.data.items))
      .set("group_steps", place.group_steps);
  return capture(id, parts(), position, call_->memory());
}

Result<> Model::Training::take_position(const TrainingPosition& position) {
  const StateValues& values = position.values;
  Place place;
  MUSTER_TRY(place.epoch, values.integer("epoch"));
  MUSTER_TRY(place.step, values.integer("step"));
  MUSTER_TRY(place.epochs_done, values.integer("epochs_done"));
  MUSTER_TRY(place.in_epoch, values.flag("in_epoch"));
  MUSTER_TRY(place.stop, values.flag("stop"));
  MUSTER_TRY(place.step_number, values.integer("step_number"));
  MUSTER_TRY(const std::int64_t steps, values.integer("model_steps"));
  MUSTER_TRY(const std::int64_t passes, values.integer("model_passes"));
  MUSTER_TRY(const std::int64_t pass, values.integer("pass"));
  MUSTER_TRY(const std::int64_t items, values.integer("items"));
  MUSTER_TRY(place.group_steps, values.integer("group_steps"));
  place.model_steps = static_cast<std::uint64_t>(steps);
  place.model_passes = static_cast<std::uint64_t>(passes);
  place.data = {.pass = static_cast<std::uint64_t>(pass), .items = static_cast<std::uint64_t>(items)};
  take_place(place, position.outputs);
  return {};
}

void Model::Training::take_place(const Place& place, std::vector<Tensor> outputs) {
  context_->cur_epoch_num = place.epoch;
  context_->cur_step_num = place.step;
  epochs_done_ = place.epochs_done;
  in_epoch_ = place.in_epoch;
  step_number_ = place.step_number;
  group_steps_ = place.group_steps;
  context_->mode = CallbackContext::Mode::train;
  context_->restore_stop(place.stop);
  (void)context_->take_point_request();
  (void)context_->take_uses();
  context_->net_outputs = std::move(outputs);
  context_->eval_results.clear();
  model_.steps_ = place.model_steps;
  model_.passes_ = place.model_passes;
  point_step_ = context_->cur_step_num;
  if (!batches_) return;
  // Behind the last step of an epoch comes the next pass, so that nobody looks for an item in this one.
  const bool pass_is_over =
      in_epoch_ && !groups_steps() && static_cast<std::int64_t>(place.data.items) == context_->batch_num;
  steps_are_made_ = pass_is_over || (in_epoch_ && groups_steps() && group_steps_ < 0);
  batches_->begin_at({.pass = pass_is_over ? place.data.pass + 1 : place.data.pass,
                      .items = pass_is_over ? 0 : place.data.items});
}

// ---- What people are told ---------------------------------------------------------------------------------

void Model::Training::note_step() {
  if (call_ == nullptr) return;
  call_->mark_step(static_cast<std::uint64_t>(step_number_));
  if (context_->net_outputs.empty()) return;
  const Tensor& loss = context_->net_outputs.front();
  call_->note_step(static_cast<std::uint64_t>(step_number_), hash_bytes(loss.bytes(), loss.size_bytes()));
}

void Model::Training::warn_of_callbacks() const {
  for (const CallbackPtr& callback : options_.callbacks) {
    const auto name = callback->forgets();
    if (!name) continue;
    warn_once(
        "callback " + *name,
        fmt::format("{} has attributes but no state_dict: after a recovery it goes on with what it has, or "
                    "anew in a process that returns; define state_dict and load_state_dict, or "
                    "state_dict returning {{}} if that is right",
                    *name));
  }
}

}  // namespace muster::train
