// How a training goes on after a loss: attempts, and what their points hold.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <set>
#include <utility>

#include "muster/train/doing.h"
#include "muster/train/model_training.h"
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
    const Result<> done = call_->is_finished() ? take_end() : attempt();
    if (done || !recovery.lost_epoch(done.error())) return done;
    MUSTER_TRY_VOID(recovery.next_epoch());
  }
}

Result<> Model::Training::attempt() {
  batches_.reset();
  wait_for_files();
  MUSTER_TRY(const RecoveringCall::Start start, call_->agree(is_fresh_));
  if (start.finished) return take_end();
  if (start.point && start.point->id == call_->end_id()) {
    MUSTER_TRY(const TrainingPosition position, position_in(*start.point));
    MUSTER_TRY_VOID(call_->restore(*start.point, parts()));
    MUSTER_TRY_VOID(take_position(position));
    return finish(true);
  }
  MUSTER_TRY_VOID(prepare(start.point ? &*start.point : nullptr));
  MUSTER_TRY_VOID(begin());
  MUSTER_TRY_VOID(run_epochs());
  return finish(false);
}

// Once in a process.
Result<> Model::Training::begin() {
  if (!std::exchange(has_begun_, true)) MUSTER_TRY_VOID(call(&Callback::on_train_begin));
  if (!std::exchange(is_fresh_, false)) return {};
  MUSTER_TRY(checkpoint::Point start, point_of(call_->start_id()));
  call_->save(std::move(start));
  return {};
}

Result<> Model::Training::finish(bool is_saved) {
  const Doing saving(cluster::WorkPhase::saving);
  std::optional<checkpoint::Point> end;
  if (!is_saved) {
    MUSTER_TRY(end, point_of(call_->end_id()));
    hand_out(*end);
  }
  wait_for_files();
  MUSTER_TRY(std::string states, states_as_text(parts()));
  return call_->finish(std::move(end), std::move(states));
}

// The call is behind the others: what it has changed is all that counts.
Result<> Model::Training::take_end() {
  MUSTER_TRY(const RecoveringCall::End end, call_->end());
  if (!end.point) return load_states(end.result, parts());
  MUSTER_TRY(const TrainingPosition position, position_in(*end.point));
  MUSTER_TRY_VOID(call_->restore(*end.point, parts()));
  return take_position(position);
}

// A callback finds in a new process what it would have made in the old one at the begin of the training and
// of the epoch, and then its state.
Result<> Model::Training::go_back_to(const checkpoint::Point& point) {
  MUSTER_TRY(const TrainingPosition position, position_in(point));
  MUSTER_TRY_VOID(take_position(position));
  if (!std::exchange(has_begun_, true)) {
    MUSTER_TRY_VOID(call(&Callback::on_train_begin));
    if (in_epoch_) MUSTER_TRY_VOID(call(&Callback::on_train_epoch_begin));
  }
  is_fresh_ = false;
  MUSTER_TRY_VOID(call_->restore(point, parts()));
  return take_position(position);
}

Result<> Model::Training::save_point_if_due() {
  if (call_ == nullptr) return {};
  const bool requested = context_->take_point_request();
  const bool due =
      points_are_requested_ ? requested : context_->cur_step_num - point_step_ >= steps_between_points;
  if (!due && !requested) return {};
  const Doing saving(cluster::WorkPhase::saving);
  in_epoch_ = true;
  auto point = point_of(call_->step_id(static_cast<std::uint64_t>(context_->cur_step_num)));
  in_epoch_ = false;
  if (!point) return fail(point.error());
  hand_out(*point);
  if (!due) return {};
  point_step_ = context_->cur_step_num;
  call_->save(*std::move(point));
  return {};
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
    const checkpoint::Pace::Work work(call_->files_pace(), uses.size() * checkpoint::size_bytes(parameters));
    for (const auto& use : uses) use(parameters);
  });
}

void Model::Training::wait_for_files() {
  if (!files_.valid()) return;
  const checkpoint::Pace::Hurry hurry(call_->files_pace());
  files_.wait();
}

// ---- What a point holds -----------------------------------------------------------------------------------

TrainingParts Model::Training::parts() const {
  TrainingParts parts{
      .parameters = parameters_, .callbacks = options_.callbacks, .metrics = model_.options_.metrics};
  if (batches_) parts.batches = context_->batch_num;
  return parts;
}

Result<checkpoint::Point> Model::Training::point_of(const checkpoint::PointId& id) {
  const DataPosition data = batches_->position();
  TrainingPosition position{.outputs = context_->net_outputs};
  position.values.set("epoch", context_->cur_epoch_num)
      .set("step", context_->cur_step_num)
      .set("epochs_done", epochs_done_)
      .set("in_epoch", in_epoch_)
      .set("stop", context_->stop_requested())
      .set("step_number", step_number_)
      .set("model_steps", static_cast<std::int64_t>(model_.steps_))
      .set("model_passes", static_cast<std::int64_t>(model_.passes_))
      .set("pass", static_cast<std::int64_t>(data.pass))
      .set("items", static_cast<std::int64_t>(data.items));
  return capture(id, parts(), position, call_->memory());
}

Result<> Model::Training::take_position(const TrainingPosition& position) {
  const StateValues& values = position.values;
  MUSTER_TRY(context_->cur_epoch_num, values.integer("epoch"));
  MUSTER_TRY(context_->cur_step_num, values.integer("step"));
  MUSTER_TRY(epochs_done_, values.integer("epochs_done"));
  MUSTER_TRY(in_epoch_, values.flag("in_epoch"));
  MUSTER_TRY(const bool stop, values.flag("stop"));
  MUSTER_TRY(step_number_, values.integer("step_number"));
  MUSTER_TRY(const std::int64_t steps, values.integer("model_steps"));
  MUSTER_TRY(const std::int64_t passes, values.integer("model_passes"));
  MUSTER_TRY(const std::int64_t pass, values.integer("pass"));
  MUSTER_TRY(const std::int64_t items, values.integer("items"));
  context_->mode = CallbackContext::Mode::train;
  context_->restore_stop(stop);
  (void)context_->take_point_request();
  (void)context_->take_uses();
  context_->net_outputs = position.outputs;
  context_->eval_results.clear();
  model_.steps_ = static_cast<std::uint64_t>(steps);
  model_.passes_ = static_cast<std::uint64_t>(passes);
  point_step_ = context_->cur_step_num;
  if (!batches_) return {};
  // Behind the last step of an epoch comes the next pass, so that nobody looks for an item in this one.
  steps_are_made_ = in_epoch_ && (groups_steps() || items == context_->batch_num);
  const bool pass_is_over = steps_are_made_ && !groups_steps();
  batches_->begin_at({.pass = static_cast<std::uint64_t>(pass_is_over ? pass + 1 : pass),
                      .items = static_cast<std::uint64_t>(pass_is_over ? 0 : items)});
  return {};
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
