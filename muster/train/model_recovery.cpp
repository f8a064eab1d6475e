// How a training goes on after a loss: attempts, and what their points hold.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "muster/train/activity_scope.h"
#include "muster/train/context.h"
#include "muster/train/model_training.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/process.h"
#include "muster/train/run_context.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

void warn_once(std::string key, const std::string& message) {
  if (process().warnings_given.insert(std::move(key)).second) log::warning(message);
}

}  // namespace

void Model::Training::prepare_to_recover() {
  context_->recovers = true;
  warn_of_callbacks();
  points_are_requested_ = std::any_of(options_.callbacks.begin(), options_.callbacks.end(),
                                      [](const CallbackPtr& c) { return c->requests_points(); });
  if (!points_are_requested_)
    warn_once("points",
              fmt::format("no ModelCheckpoint says how often recovery points are saved: every {} steps",
                          steps_between_points));
}

void Model::Training::note_end(const checkpoint::Point& end) {
  hand_out(end);
  wait_for_files();
}

bool Model::Training::makes_steps_together() const {
  Session* const session = Session::current();
  return session != nullptr && session->membership().world_size() > 1 &&
         context().parallel_mode == ParallelMode::data_parallel;
}

// From here to the updates of the step the parameters are those of before it, and another worker may go on
// from them. The workers of a divided network go back to a point.
Result<> Model::Training::ready_for_loss() {
  commits_ = makes_steps_together() && stages() == nullptr;
  if (!commits_) return {};
  step_has_begun_ = true;
  return loop_.offer_memory();
}

Result<> Model::Training::save_point_if_due() {
  if (!loop_.recovers()) return hand_out_now(&TrainingLoop::point_of_step);
  const bool requested = context_->take_point_request();
  const bool due = points_are_requested_ ? requested : loop_.is_save_due();
  if (!due && !requested) return {};
  const ActivityScope saving(cluster::WorkPhase::saving);
  MUSTER_TRY(checkpoint::Point point, loop_.point_of_step());
  hand_out(point);
  if (!due) return {};
  loop_.save(std::move(point));
  if (stages() == nullptr) return {};
  return loop_.call()->exchange(static_cast<std::uint64_t>(loop_.steps()));
}

// Of a point's tensors those of the network in training come first.
std::span<const checkpoint::Entry> Model::Training::parameters_in(const checkpoint::Point& point) const {
  const auto network = model_.train_network_->parameters();
  const auto count = std::count_if(network.begin(), network.end(),
                                   [](const auto& parameter) { return parameter->absence() == nullptr; });
  return std::span(point.tensors).first(static_cast<std::size_t>(count));
}

Result<> Model::Training::hand_out_now(Result<checkpoint::Point> (TrainingLoop::*point)()) {
  (void)context_->take_point_request();
  const std::vector<CallbackContext::PointUse> uses = context_->take_uses();
  if (uses.empty()) return {};
  const ActivityScope saving(cluster::WorkPhase::saving);
  for (const CallbackPtr& callback : options_.callbacks) MUSTER_TRY_VOID(callback->flush());
  MUSTER_TRY(const checkpoint::Point made, (loop_.*point)());
  return catch_error([&] {
    for (const auto& use : uses) use(made, parameters_in(made));
  });
}

// The tensors of a point are not written any more, so that it and the files of callbacks share them.
void Model::Training::hand_out(const checkpoint::Point& point) {
  std::vector<CallbackContext::PointUse> uses = context_->take_uses();
  if (uses.empty()) return;
  wait_for_files();
  const std::size_t count = parameters_in(point).size();
  files_ = std::async(std::launch::async, [this, uses = std::move(uses), point, count] {
    const auto parameters = std::span(point.tensors).first(count);
    const checkpoint::WriteThrottle::Work work(loop_.call()->files_throttle(),
                                               uses.size() * checkpoint::size_bytes(parameters));
    for (const auto& use : uses)
      if (const Result<> used = catch_error([&] { use(point, parameters); }); !used)
        log::error(
            fmt::format("a callback has not used the parameters of a point: {}", used.error().message));
  });
}

void Model::Training::wait_for_files() {
  if (!files_.valid()) return;
  const checkpoint::WriteThrottle::Flush flush(loop_.call()->files_throttle());
  files_.wait();
  files_ = {};
}

// ---- What a point holds -----------------------------------------------------------------------------------

TrainingParts Model::Training::parts() const {
  TrainingParts parts{
      .parameters = parameters_, .callbacks = options_.callbacks, .metrics = model_.options_.metrics};
  if (loop_.is_open()) parts.batches = context_->batch_num;
  parts.is_together = makes_steps_together();
  return parts;
}

Model::Training::Counters Model::Training::counters() const {
  return {.epoch = context_->cur_epoch_num,
          .step_number = step_number_,
          .model_steps = model_.steps_,
          .modes = modes_ && loop_.recovers() ? modes_->text() : ""};
}

void Model::Training::describe(TrainingPosition& position, Moment moment) const {
  const Counters here = moment == Moment::now ? counters() : before_;
  position.outputs = context_->net_outputs;
  position.values.set("epoch", here.epoch)
      .set("step_number", here.step_number)
      .set("model_steps", static_cast<std::int64_t>(here.model_steps));
  if (!here.modes.empty()) position.values.set("modes", here.modes);
}

Result<> Model::Training::take(const TrainingPosition& position) {
  Counters counters;
  MUSTER_TRY(counters.epoch, position.values.integer("epoch"));
  MUSTER_TRY(counters.step_number, position.values.integer("step_number"));
  MUSTER_TRY(const std::int64_t steps, position.values.integer("model_steps"));
  counters.model_steps = static_cast<std::uint64_t>(steps);
  take_counters(counters);
  if (position.values.has("modes")) {
    begin_modes();  // of a call that is over nothing has begun here
    MUSTER_TRY(const std::string modes, position.values.text("modes"));
    modes_->take(modes);
  }
  context_->net_outputs = position.outputs;
  return {};
}

// The step that was under way is made again; nothing has changed since it began.
void Model::Training::take_back() {
  take_counters(before_);
  if (modes_ && !before_.modes.empty()) modes_->take(before_.modes);
}

std::int64_t Model::Training::commits_behind(std::int64_t epochs) const {
  if (!shares_.is_together) return 0;
  if (!options_.valid_epochs) return epochs / options_.valid_frequency;
  return std::distance(options_.valid_epochs->begin(), options_.valid_epochs->upper_bound(epochs));
}

void Model::Training::take_counters(const Counters& counters) {
  context_->cur_epoch_num = counters.epoch;
  context_->cur_step_num = loop_.steps();
  step_number_ = counters.step_number;
  model_.steps_ = counters.model_steps;
  group_has_begun_ = false;
  context_->mode = CallbackContext::Mode::train;
  (void)context_->take_point_request();
  (void)context_->take_uses();
  context_->eval_results.clear();
}

void Model::Training::note_resumed() {
  step_has_begun_ = false;
  loop_.call()->mark_step(static_cast<std::uint64_t>(step_number_));
}

void Model::Training::note_regrouped() {
  for (const CallbackPtr& callback : options_.callbacks) callback->note_saved_at(loop_.steps());
}

// ---- What people are told ---------------------------------------------------------------------------------

void Model::Training::note_step() {
  RecoveringCall* const call = loop_.call();
  if (call == nullptr) return;
  call->mark_step(static_cast<std::uint64_t>(step_number_));
  if (context_->net_outputs.empty()) return;
  const Tensor& loss = context_->net_outputs.front();
  call->note_step(static_cast<std::uint64_t>(step_number_), hash_bytes(loss.bytes(), loss.size_bytes()));
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
