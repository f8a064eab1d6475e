#include "muster/train/recoverable.h"

#include <fmt/format.h>

#include <utility>

#include "muster/train/aborted_step.h"
#include "muster/train/front_end.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/run_context.h"

namespace muster::train {

Recoverable::~Recoverable() {
  if (in_body_ && recovery_ != nullptr) (void)end_body();
}

bool Recoverable::is_aborted() const { return in_body_ && step_is_aborted(); }

Result<> Recoverable::begin() {
  if (options_.epochs < 1 || options_.save_steps < 1)
    return fail(Code::invalid_argument,
                fmt::format("recoverable: epochs is {} and save_steps {}: both are at least 1",
                            options_.epochs, options_.save_steps));
  passes_ = options_.first_pass;
  recovery_ = options_.recovery != nullptr ? options_.recovery : recovery_of_session();
  if (recovery_ != nullptr && recovery_->calls().inside)
    recovery_ = nullptr;  // a part of another call's step
  const nn::CellPtr cells[] = {options_.network, options_.optimizer};
  parameters_ = parameters_of(cells);
  if (recovery_ == nullptr) {
    batches_.emplace(options_.dataset, passes_);
    return {};
  }
  MUSTER_TRY(call_, RecoveringCall::begin(*recovery_));
  MUSTER_TRY(const PipelineLayout now, pipeline_layout());
  call_->set_sharing({.stage = now.stage,
                      .own_state = [this] { return own_state_in(parts()); },
                      .capture = [this] { return point_in_memory(); }});
  return {};
}

Result<std::optional<LoopStep>> Recoverable::next() {
  MUSTER_TRY_VOID(look_for_interruption());
  if (!std::exchange(has_begun_, true)) MUSTER_TRY_VOID(begin());
  if (is_over_) return std::nullopt;
  if (recovery_ == nullptr) return advance();
  MUSTER_TRY_VOID(end_step());
  while (true) {
    auto made = go_on();
    if (made) {
      if (*made) begin_body(*call_, static_cast<std::uint64_t>(steps_));
      in_body_ = made->has_value();
      return made;
    }
    if (call_ == nullptr) return made;
    MUSTER_TRY(const bool again, call_->tries_again(made.error()));
    if (!again) return made;
    is_agreed_ = false;
  }
}

// The step counts unless it is void.
Result<> Recoverable::end_step() {
  if (!std::exchange(in_body_, false)) return {};
  if (BodyEnd end = end_body(); end.is_aborted) {
    is_agreed_ = false;
    stop_ = false;
    start_ = std::move(end.start);
    return start_ ? Result<>{} : recovery_->next_epoch();
  }
  call_->mark_step(static_cast<std::uint64_t>(++steps_));
  if (steps_ - saved_ < options_.save_steps) return {};
  saved_ = steps_;
  MUSTER_TRY(checkpoint::Point point, point_of(call_->step_id(static_cast<std::uint64_t>(steps_))));
  call_->save(std::move(point));
  return {};
}

Result<std::optional<LoopStep>> Recoverable::go_on() {
  if (!is_agreed_) MUSTER_TRY_VOID(resume());
  if (is_over_) return std::nullopt;
  return advance();
}

Result<RecoveringCall::Start> Recoverable::agree() {
  if (start_) return *std::exchange(start_, std::nullopt);
  if (call_->is_finished()) return RecoveringCall::Start{.finished = true};
  using In = checkpoint::Standing::State;
  call_->set_memory({.state = is_fresh_ ? In::fresh : In::spoilt});
  return call_->agree();
}

Result<> Recoverable::resume() {
  MUSTER_TRY(const RecoveringCall::Start start, agree());
  batches_.reset();
  if (start.finished) {
    MUSTER_TRY(RecoveringCall::End end, call_->end());
    if (end.point) MUSTER_TRY_VOID(take({.point = std::move(end.point), .is_of_another = end.is_of_another}));
    is_over_ = true;
    call_.reset();
    return {};
  }
  batches_.emplace(options_.dataset, passes_);
  if (start.point) MUSTER_TRY_VOID(take(start));
  is_agreed_ = true;
  if (!std::exchange(is_fresh_, false) || start.point) return {};
  MUSTER_TRY(checkpoint::Point point, point_of(call_->start_id()));
  call_->save(std::move(point));
  return {};
}

// One item, over the ends of epochs.
Result<std::optional<LoopStep>> Recoverable::advance() {
  while (epoch_ < options_.epochs && !stop_) {
    before_ = place();
    MUSTER_TRY(std::optional<data::Item> item, batches_->next());
    if (item) return LoopStep{.epoch = epoch_, .step = step_++, .item = *std::move(item)};
    ++epoch_;
    step_ = 0;
  }
  MUSTER_TRY_VOID(finish());
  is_over_ = true;
  return std::nullopt;
}

Result<> Recoverable::finish() {
  if (recovery_ == nullptr) return {};
  MUSTER_TRY(checkpoint::Point end, point_of(call_->end_id()));
  if (call_->is_rendezvous_due()) {
    // Who has come back takes the end.
    call_->save(std::move(end));
    return fail(Code::peer_lost, "a worker was lost and has come back");
  }
  MUSTER_TRY_VOID(call_->finish(std::move(end), "{}"));
  call_.reset();
  return {};
}

// ---- Points -----------------------------------------------------------------------------------------------

TrainingParts Recoverable::parts() const {
  TrainingParts parts{.parameters = parameters_, .metrics = no_metrics_};
  parts.is_together = call_ != nullptr && call_->has_equal_parameters();
  if (const auto size = options_.dataset.size(); size && *size >= 0) parts.batches = *size;
  return parts;
}

Recoverable::Place Recoverable::place() const {
  return {.epoch = epoch_,
          .step = step_,
          .steps = steps_,
          .stop = stop_,
          .data = batches_->position(),
          .runs = counted_runs()};
}

Result<checkpoint::Point> Recoverable::point_of(const checkpoint::PointId& id) {
  return point_at(id, place());
}

// For a worker that lacks it. The body goes on drawing random numbers where it is.
Result<checkpoint::Point> Recoverable::point_in_memory() {
  const std::uint64_t now = counted_runs();
  count_runs_from(before_.runs);
  auto point = point_at(call_->step_id(static_cast<std::uint64_t>(before_.steps)), before_);
  count_runs_from(now);
  return point;
}

Result<checkpoint::Point> Recoverable::point_at(const checkpoint::PointId& id, const Place& place) {
  TrainingPosition position;
  position.values.set("epoch", place.epoch)
      .set("step", place.step)
      .set("steps", place.steps)
      .set("stop", place.stop)
      .set("passes", static_cast<std::int64_t>(passes_))
      .set("pass", static_cast<std::int64_t>(place.data.pass))
      .set("items", static_cast<std::int64_t>(place.data.items));
  return capture(id, parts(), position, call_->memory());
}

Result<> Recoverable::take(const RecoveringCall::Start& start) {
  MUSTER_TRY(const TrainingPosition position, position_in(*start.point));
  MUSTER_TRY_VOID(call_->restore(*start.point, parts()));
  const StateValues& values = position.values;
  MUSTER_TRY(epoch_, values.integer("epoch"));
  MUSTER_TRY(step_, values.integer("step"));
  MUSTER_TRY(steps_, values.integer("steps"));
  MUSTER_TRY(stop_, values.flag("stop"));
  MUSTER_TRY(const std::int64_t passes, values.integer("passes"));
  MUSTER_TRY(const std::int64_t pass, values.integer("pass"));
  MUSTER_TRY(const std::int64_t items, values.integer("items"));
  passes_ = static_cast<std::uint64_t>(passes);
  saved_ = steps_;
  is_fresh_ = false;
  call_->mark_step(static_cast<std::uint64_t>(steps_));
  if (batches_)
    batches_->begin_at(
        {.pass = static_cast<std::uint64_t>(pass), .items = static_cast<std::uint64_t>(items)});
  return {};
}

}  // namespace muster::train
