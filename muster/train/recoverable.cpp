#include "muster/train/recoverable.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "muster/graph/random_streams.h"
#include "muster/train/aborted_step.h"
#include "muster/train/cell_modes.h"
#include "muster/train/divided_parameters.h"
#include "muster/train/front_end.h"
#include "muster/train/job.h"
#include "muster/train/kept_state.h"
#include "muster/train/process.h"
#include "muster/train/training_loop.h"
#include "muster/train/updates.h"

namespace muster::train {

bool body_is_void() { return step_is_aborted(); }
namespace {

// A process that comes back has drawn less than the others: what a body draws by ops of its own (the noise of
// a GAN) is decided by its step, and not by how much was drawn before.
void begin_streams_of_step(std::int64_t steps) {
  constexpr int bits_of_draws = 20;  // in one body
  graph::begin_random_streams(steps << bits_of_draws);
}

void warn_of_seed() {
  if (!process().warnings_given.insert("set_seed in a body").second) return;
  log::warning(
      "recoverable: the body of the loop calls set_seed(), and no recovery point holds the seed: in a "
      "process that comes back it is the one of before the loop, and random numbers and the order of rows "
      "are others than without that death. Call set_seed() before the loop: each step and each epoch draws "
      "other numbers by itself");
}

}  // namespace

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
  void keep(CallbackPtr state) {
    states_.push_back(kept_.emplace_back(std::make_shared<KeptState>(std::move(state))));
  }
  Result<> check_written();
  Error lacks(const graph::Parameter& parameter) const;
  Result<> end_step();
  Result<LoopStep> begin_step();
  Result<> open(TrainingLoop& loop) override;
  TrainingParts parts() const override;
  std::vector<nn::CellPtr> cells() const override { return {options_.network, options_.optimizer}; }
  bool stop_requested() const override { return stop_; }
  void set_stop(bool requested) override { stop_ = requested; }
  void note_resumed() override { mark_step(); }
  // What a script reads behind the loop, for a process that comes back when its end is no more needed.
  Result<std::string> result() override { return states_as_text(parts()); }
  void mark_step() { loop_->call()->mark_step(static_cast<std::uint64_t>(loop_->steps())); }

  RecoverableOptions options_;
  std::vector<graph::ParameterPtr> parameters_;
  std::vector<std::shared_ptr<KeptState>> kept_;
  std::vector<CallbackPtr> states_;  // the same
  NamedMetrics no_metrics_;
  std::uint64_t passes_ = 0;
  std::optional<TrainingLoop> loop_;  // from the first step on
  bool in_body_ = false;
  std::uint64_t seed_of_body_ = 0;  // as it began
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
  for (const graph::ParameterPtr& kept : options_.kept_parameters)
    if (std::ranges::find(parameters_, kept) == parameters_.end()) parameters_.push_back(kept);
  for (const CallbackPtr& kept : options_.kept_states) keep(kept);
  if (job_recovers())
    keep(std::make_shared<CellModes>(options_.network, parameters_of(std::span(&options_.network, 1))));
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
    if (event == TrainingLoop::Event::step) {
      MUSTER_TRY(LoopStep step, begin_step());
      return step;
    }
    if (event == TrainingLoop::Event::done) {
      begin_streams_of_step(loop_->steps());
      return std::nullopt;
    }
  }
}

Result<LoopStep> Recoverable::Steps::begin_step() {
  in_body_ = true;
  seed_of_body_ = seed();
  begin_streams_of_step(loop_->steps());
  if (loop_->recovers()) {
    for (const auto& kept : kept_) MUSTER_TRY_VOID(catch_error([&] { return kept->begin_body(); }));
    begin_body(*loop_->call(), static_cast<std::uint64_t>(loop_->steps()));
  }
  return LoopStep{.epoch = loop_->epoch(), .step = loop_->step_in_epoch(), .item = loop_->take_item()};
}

Error Recoverable::Steps::lacks(const graph::Parameter& parameter) const {
  return {Code::invalid_argument,
          fmt::format(
              "recoverable: the body of the loop has changed parameter '{}', which belongs neither to the "
              "network nor to the optimizer, and what it holds would be lost with a process: name what "
              "the body keeps from step to step, as in muster.recoverable(net, optimizer, data_set, "
              "states={{'{}': it}})",
              parameter.name(), parameter.name())};
}

// What is in no point begins anew in a process that comes back, and no other has it.
Result<> Recoverable::Steps::check_written() {
  WrittenParameters* const written = loop_->written();
  if (written == nullptr) return {};
  const std::vector<graph::ParameterPtr> others = written->others();
  const auto counters = others.empty() ? decltype(steps_of_optimizers()){} : steps_of_optimizers();
  if (std::ranges::any_of(others, [&](const auto& other) { return counters.contains(other); }))
    return fail(Code::invalid_argument,
                "recoverable: an optimizer that it was not given has made a step in the loop, and what that "
                "one keeps would be lost with a process: give all of them, as in muster.recoverable(net, "
                "[one, other], data_set)");
  if (!others.empty()) return fail(lacks(*others.front()));
  if (loop_->steps() == 1 && !written->has_saved() && options_.kept_states.empty())
    log::warning(
        "recoverable: no optimizer has made a step in the first step of the loop. What the body keeps from "
        "step to step (accumulated gradients, for one) is lost with a process, and the training ends with "
        "other numbers then: name it, as in muster.recoverable(net, optimizer, data_set, states={'sums': "
        "sums})");
  return {};
}

// The step counts unless it is void.
Result<> Recoverable::Steps::end_step() {
  if (!std::exchange(in_body_, false)) return {};
  for (const auto& kept : kept_) kept->end_body();
  BodyEnd end = loop_->recovers() ? end_body() : BodyEnd{};
  if (end.is_aborted) {
    stop_ = false;
    return loop_->go_back(std::move(end.start));
  }
  loop_->complete_step();
  if (!loop_->recovers()) return {};
  if (seed() != seed_of_body_) warn_of_seed();
  MUSTER_TRY_VOID(check_written());
  mark_step();
  if (!loop_->is_save_due()) return {};
  MUSTER_TRY(checkpoint::Point point, loop_->point_of_step());
  loop_->save(std::move(point));
  return {};
}

Result<> Recoverable::Steps::open(TrainingLoop& loop) {
  // Before anything is restored: a point holds this worker's pieces.
  if (world_size() > 1 && options_.optimizer) MUSTER_TRY_VOID(divide_optimizer(*options_.optimizer));
  loop.read(Batches(options_.dataset, passes_));
  loop.start_at(0, 0);
  return {};
}

TrainingParts Recoverable::Steps::parts() const {
  TrainingParts parts{.parameters = parameters_, .callbacks = states_, .metrics = no_metrics_};
  const RecoveringCall* const call = loop_->call();
  parts.is_together = call != nullptr && call->has_equal_parameters();
  if (!options_.kept_parameters.empty())
    parts.own = "what the body keeps from step to step is each worker's own";
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
