#include "muster/train/recoverable.h"

#include <fmt/format.h>

#include <utility>

#include "muster/train/front_end.h"
#include "muster/train/void_step.h"

namespace muster::train {

Recoverable::~Recoverable() {
  if (in_body_ && recovery_ != nullptr) (void)end_body();
}

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
      if (*made) begin_body(*recovery_);
      in_body_ = made->has_value();
      return made;
    }
    if (!recovery_->lost_epoch(made.error())) return made;
    MUSTER_TRY_VOID(recovery_->next_epoch());
    is_agreed_ = false;
  }
}

// The step counts unless it is void.
Result<> Recoverable::end_step() {
  if (!std::exchange(in_body_, false)) return {};
  if (end_body()) {
    is_agreed_ = false;
    stop_ = false;
    return recovery_->next_epoch();
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

Result<> Recoverable::resume() {
  batches_.reset();
  RecoveringCall::Start start{.finished = call_->is_finished()};
  if (!start.finished) {
    MUSTER_TRY(start, call_->agree(is_fresh_));
  }
  if (start.finished) {
    MUSTER_TRY(RecoveringCall::End end, call_->end());
    if (end.point) MUSTER_TRY_VOID(take(*end.point));
    is_over_ = true;
    call_.reset();
    return {};
  }
  batches_.emplace(options_.dataset, passes_);
  if (start.point) MUSTER_TRY_VOID(take(*start.point));
  is_agreed_ = true;
  if (!std::exchange(is_fresh_, false) || start.point) return {};
  MUSTER_TRY(checkpoint::Point point, point_of(call_->start_id()));
  call_->save(std::move(point));
  return {};
}

// One item, over the ends of epochs.
Result<std::optional<LoopStep>> Recoverable::advance() {
  while (epoch_ < options_.epochs && !stop_) {
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
  MUSTER_TRY_VOID(call_->finish(std::move(end), "{}"));
  call_.reset();
  return {};
}

// ---- Points -----------------------------------------------------------------------------------------------

TrainingParts Recoverable::parts() const {
  TrainingParts parts{.parameters = parameters_, .metrics = no_metrics_};
  if (const auto size = options_.dataset.size(); size && *size >= 0) parts.batches = *size;
  return parts;
}

Result<checkpoint::Point> Recoverable::point_of(const checkpoint::PointId& id) {
  const DataPosition data = batches_->position();
  TrainingPosition position;
  position.values.set("epoch", epoch_)
      .set("step", step_)
      .set("steps", steps_)
      .set("stop", stop_)
      .set("passes", static_cast<std::int64_t>(passes_))
      .set("pass", static_cast<std::int64_t>(data.pass))
      .set("items", static_cast<std::int64_t>(data.items));
  return capture(id, parts(), position, call_->memory());
}

Result<> Recoverable::take(const checkpoint::Point& point) {
  MUSTER_TRY(const TrainingPosition position, position_in(point));
  MUSTER_TRY_VOID(call_->restore(point, parts()));
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
  if (batches_)
    batches_->begin_at(
        {.pass = static_cast<std::uint64_t>(pass), .items = static_cast<std::uint64_t>(items)});
  return {};
}

}  // namespace muster::train
