#include "muster/train/recoverable.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "muster/train/aborted_step.h"
#include "muster/train/divided_parameters.h"
#include "muster/train/front_end.h"
#include "muster/train/job.h"
#include "muster/train/training_loop.h"
#include "muster/train/updates.h"

namespace muster::train {

// The body of the loop makes the steps.
class Recoverable::Steps final : public LoopHooks {
 public:
  explicit Steps(RecoverableOptions options);
  ~Steps() override;

  Result<std::optional<LoopStep>> next();
  void stop() { stop_ = true; }
  bool is_aborted() const { return in_body_ && step_is_aborted(); }
  std::uint64_t passes() const { return passes_; }

 private:
  Result<> begin_loop();
  Result<> check_optimizers();
  Result<> end_step();
  LoopStep begin_step();
  Result<> open(TrainingLoop& loop) override;
  TrainingParts parts() const override;
  bool stop_requested() const override { return stop_; }
  void set_stop(bool requested) override { stop_ = requested; }
  void note_resumed() override { mark_step(); }
  void mark_step() { loop_->call()->mark_step(static_cast<std::uint64_t>(loop_->steps())); }

  RecoverableOptions options_;
  std::vector<graph::ParameterPtr> parameters_;
  std::optional<std::map<graph::ParameterPtr, std::int64_t>> steps_before_;  // until the first body is over
  NamedMetrics no_metrics_;
  std::uint64_t passes_ = 0;
  std::optional<TrainingLoop> loop_;  // from the first step on
  bool in_body_ = false;
  bool stop_ = false;
};

Recoverable::Steps::Steps(RecoverableOptions options)
    : options_(std::move(options)), passes_(options_.first_pass) {}

Recoverable::Steps::~Steps() {
  if (in_body_ && loop_->recovers()) (void)end_body();
}

Result<> Recoverable::Steps::begin_loop() {
  MUSTER_TRY_VOID(require_init("recoverable"));
  if (options_.epochs < 1 || options_.save_steps < 1)
    return fail(Code::invalid_argument,
                fmt::format("recoverable: epochs is {} and save_steps {}: both are at least 1",
                            options_.epochs, options_.save_steps));
  const nn::CellPtr cells[] = {options_.network, options_.optimizer};
  parameters_ = parameters_of(cells);
  steps_before_ = steps_of_optimizers();
  loop_.emplace(*this, TrainingLoop::Options{.epochs = options_.epochs,
                                             .save_steps = options_.save_steps,
                                             .passes = &passes_,
                                             .recovery = options_.recovery});
  return {};
}

Result<std::optional<LoopStep>> Recoverable::Steps::next() {
  MUSTER_TRY_VOID(look_for_interruption());
  if (!loop_) MUSTER_TRY_VOID(begin_loop());
  MUSTER_TRY_VOID(end_step());
  while (true) {
    MUSTER_TRY(const TrainingLoop::Event event, loop_->next());
    if (event == TrainingLoop::Event::step) return begin_step();
    if (event == TrainingLoop::Event::done) return std::nullopt;
  }
}

LoopStep Recoverable::Steps::begin_step() {
  in_body_ = true;
  if (loop_->recovers()) begin_body(*loop_->call(), static_cast<std::uint64_t>(loop_->steps()));
  return {.epoch = loop_->epoch(), .step = loop_->step_in_epoch(), .item = loop_->take_item()};
}

// What an optimizer keeps that is in no point begins anew in a process that comes back, and no other has it.
Result<> Recoverable::Steps::check_optimizers() {
  const auto before = std::exchange(steps_before_, std::nullopt);
  if (!before) return {};
  bool is_updated = false;
  for (const auto& [counter, steps] : steps_of_optimizers()) {
    const auto found = before->find(counter);
    const bool has_stepped = found == before->end() || found->second != steps;
    is_updated = is_updated || has_stepped;
    if (has_stepped && std::ranges::find(parameters_, counter) == parameters_.end())
      return fail(
          Code::invalid_argument,
          "recoverable: an optimizer that it was not given has made a step in the loop, and what that "
          "one keeps would be lost with a process: give all of them, as in muster.recoverable(net, "
          "[one, other], data_set)");
  }
  if (!is_updated)
    log::warning(
        "recoverable: no optimizer has made a step in the first step of the loop. What the body keeps from "
        "step to step (accumulated gradients, a loss scale) is lost with a process, and the training ends "
        "with other numbers then: take larger batches, and accumulate over their parts within one step");
  return {};
}

// The step counts unless it is void.
Result<> Recoverable::Steps::end_step() {
  if (!std::exchange(in_body_, false)) return {};
  BodyEnd end = loop_->recovers() ? end_body() : BodyEnd{};
  if (end.is_aborted) {
    stop_ = false;
    return loop_->go_back(std::move(end.start));
  }
  loop_->complete_step();
  if (!loop_->recovers()) return {};
  MUSTER_TRY_VOID(check_optimizers());
  mark_step();
  if (!loop_->is_save_due()) return {};
  MUSTER_TRY(checkpoint::Point point, loop_->point_of_step());
  loop_->save(std::move(point));
  return {};
}

Result<> Recoverable::Steps::open(TrainingLoop& loop) {
  // Before anything is restored: a point holds this worker's pieces.
  if (world_size() > 1) MUSTER_TRY_VOID(divide_optimizer(*options_.optimizer));
  loop.read(Batches(options_.dataset, passes_));
  loop.start_at(0, 0);
  return {};
}

TrainingParts Recoverable::Steps::parts() const {
  TrainingParts parts{.parameters = parameters_, .metrics = no_metrics_};
  const RecoveringCall* const call = loop_->call();
  parts.is_together = call != nullptr && call->has_equal_parameters();
  if (const auto size = options_.dataset.size(); size && *size >= 0) parts.batches = *size;
  return parts;
}

Recoverable::Recoverable(RecoverableOptions options) : steps_(std::make_unique<Steps>(std::move(options))) {}
Recoverable::~Recoverable() = default;
Result<std::optional<LoopStep>> Recoverable::next() { return steps_->next(); }
void Recoverable::stop() { steps_->stop(); }
bool Recoverable::is_aborted() const { return steps_->is_aborted(); }
std::uint64_t Recoverable::passes() const { return steps_->passes(); }

}  // namespace muster::train
