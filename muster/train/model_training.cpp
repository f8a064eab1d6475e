#include "muster/train/model_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/train/aborted_step.h"
#include "muster/train/activity_scope.h"
#include "muster/train/agreement.h"
#include "muster/train/divided_parameters.h"
#include "muster/train/flight.h"
#include "muster/train/front_end.h"
#include "muster/train/job.h"
#include "muster/train/metrics.h"
#include "muster/train/model_steps.h"
#include "muster/train/page_requests.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/process.h"
#include "muster/train/run_context.h"
#include "muster/train/served_parameters.h"
#include "muster/train/session.h"
#include "muster/train/step_logger.h"
#include "muster/train/training_numbers.h"
#include "muster/train/updates.h"

namespace muster::train {
namespace {

Result<> commit_step() { return RecoveringCall::current()->commit(); }

TrainingLoop::Options loop_options(const TrainOptions& options, bool groups_steps, std::uint64_t& passes) {
  return {.epochs = options.epochs,
          .save_steps = steps_between_points,
          .group_steps = groups_steps ? options.sink_size : 0,
          .passes = &passes,
          .recovery = options.recovery};
}

// And the callbacks that the environment asks for.
TrainOptions with_own_callbacks(TrainOptions options) {
  for (CallbackPtr callback : {metrics_file_callback(), page_requests_callback()})
    if (callback) options.callbacks.push_back(std::move(callback));
  return options;
}

}  // namespace

Model::Training::Training(Model& model, const TrainOptions& options)
    : model_(model),
      options_(with_own_callbacks(options)),
      context_(model.prepared_context(options.context, CallbackContext::Mode::train, options_.callbacks)),
      loop_(*this, loop_options(options, groups_steps(), model.passes_)),
      eval_loss_(std::make_shared<Loss>()) {
  const nn::CellPtr cells[] = {model.train_network_, model.options_.network, model.options_.optimizer,
                               model.options_.loss_fn, model.eval_network_};
  parameters_ = parameters_of(cells);
}

namespace {

// However a training ends, also by an exception: what callbacks hold back is written.
class FlushAtEnd {
 public:
  explicit FlushAtEnd(std::span<const CallbackPtr> callbacks) : callbacks_(callbacks) {}
  ~FlushAtEnd() {
    for (const CallbackPtr& callback : callbacks_)
      if (const Result<> done = callback->flush(); !done) log::warning(done.error().message);
  }
  FlushAtEnd(const FlushAtEnd&) = delete;
  FlushAtEnd& operator=(const FlushAtEnd&) = delete;

 private:
  std::span<const CallbackPtr> callbacks_;
};

}  // namespace

Result<> Model::Training::run() {
  const FlushAtEnd flush(options_.callbacks);
  if (loop_.recovers()) prepare_to_recover();
  while (true) {
    MUSTER_TRY(const TrainingLoop::Event event, loop_.next());
    if (event == TrainingLoop::Event::done) return {};
    if (const Result<> made = make(event); !made) MUSTER_TRY_VOID(loop_.recover(made.error()));
    // In a step of a loop around this training: what it computes from here on is no number of any training.
    if (step_is_aborted()) return {};
  }
}

// ---- Before the first step --------------------------------------------------------------------------------

Result<> Model::Training::open(TrainingLoop&) {
  const ActivityScope starting(cluster::WorkPhase::starting);
  keep_seed(real_environment());
  MUSTER_TRY_VOID(check_options());
  MUSTER_TRY_VOID(model_.check_equal_division(*model_.train_network_));
  // Before anything is restored: a point holds this worker's pieces.
  for (const auto& [path, cell] : model_.train_network_->descendants())
    if (const auto* optimizer = dynamic_cast<const nn::Optimizer*>(cell.get()))
      MUSTER_TRY_VOID(divide_optimizer(*optimizer));
  begin_modes();
  return count_steps();
}

// Once: what callbacks switch behind it stays, also where a later attempt goes on.
void Model::Training::begin_modes() {
  if (modes_) return;
  model_.train_network_->set_train();
  modes_.emplace(model_.train_network_, parameters_);
}

Result<> Model::Training::check(Batches& batches) {
  const ActivityScope starting(cluster::WorkPhase::starting);
  MUSTER_TRY_VOID(model_.check_agreement_of_workers(context_->batch_num, options_.dataset));
  MUSTER_TRY_VOID(agree_on_evaluations());
  MUSTER_TRY_VOID(check_callbacks());
  return model_.divide(*model_.train_network_, batches);
}

// A callback finds in a new process what it would have made in the old one, and then its state.
Result<> Model::Training::begin(bool in_epoch) {
  MUSTER_TRY_VOID(call(&Callback::on_train_begin));
  return in_epoch ? call(&Callback::on_train_epoch_begin) : Result<>{};
}

Result<> Model::Training::check_options() {
  MUSTER_TRY(const PipelineLayout layout, pipeline_layout());
  note_stage(layout.stage);
  MUSTER_TRY_VOID(check_places(*model_.train_network_));
  MUSTER_TRY_VOID(check_shards(options_.dataset));
  if (options_.epochs < 1 || options_.initial_epoch < 0)
    return fail(Code::invalid_argument,
                fmt::format("train: epochs is {} and initial_epoch {}: at least 1 and 0 are needed",
                            options_.epochs, options_.initial_epoch));
  if (!options_.resume.empty() && options_.initial_epoch > 0)
    return fail(
        Code::invalid_argument,
        fmt::format("train: resume is '{}' and initial_epoch {}: the checkpoint says which epoch comes "
                    "next, so leave initial_epoch away",
                    options_.resume, options_.initial_epoch));
  if (options_.sink_size == 0 || options_.sink_size < -1)
    return fail(Code::invalid_argument,
                fmt::format("train: sink_size is {}: -1, or a number of steps from 1", options_.sink_size));
  if (model_.options_.loss_fn != nullptr && model_.options_.optimizer == nullptr)
    return fail(Code::invalid_argument, "train: the model was made without an optimizer");
  if (options_.micro_batches < 1 || (options_.micro_batches > 1 && model_.one_step_ == nullptr))
    return fail(
        Code::invalid_argument,
        fmt::format("train: micro_batches is {}: a number from 1, and more than 1 only where the model has "
                    "an optimizer",
                    options_.micro_batches));
  if (model_.one_step_ != nullptr) model_.one_step_->set_micro_batches(options_.micro_batches);
  if (options_.valid_frequency < 1 ||
      (options_.valid_epochs && !options_.valid_epochs->empty() && *options_.valid_epochs->begin() < 1))
    return fail(Code::invalid_argument, "train: valid_frequency counts epochs from 1");
  return {};
}

Result<> Model::Training::count_steps() {
  Batches& batches = loop_.read(model_.batches_of(options_.dataset, model_.passes_, *model_.train_network_));
  MUSTER_TRY(const std::int64_t steps, batches.count("training"));
  MUSTER_TRY_VOID(check_columns(options_.dataset, model_.options_.loss_fn != nullptr, "training"));
  if (options_.valid_dataset) {
    std::uint64_t passes = 0;
    MUSTER_TRY_VOID(
        model_.batches_of(*options_.valid_dataset, passes, *model_.train_network_).count("validation"));
  }
  if (steps < 0 && !groups_steps())
    return fail(Code::invalid_argument,
                "train: a dataset that repeats without end needs dataset_sink_mode and a sink_size, which "
                "say how many steps an epoch has");
  context_->mode = CallbackContext::Mode::train;
  context_->batch_num = groups_steps() ? options_.sink_size : steps;
  context_->epoch_num = options_.epochs;
  context_->evaluates = options_.valid_dataset.has_value();
  context_->dataset_sink_mode = options_.dataset_sink_mode;
  context_->cur_step_num = options_.initial_epoch * context_->batch_num;
  loop_.start_at(options_.initial_epoch, context_->cur_step_num);
  group_has_begun_ = false;
  step_number_ =
      options_.initial_epoch > 0 ? context_->cur_step_num : static_cast<std::int64_t>(model_.steps_);
  if (options_.initial_epoch > 0) model_.passes_ = static_cast<std::uint64_t>(options_.initial_epoch);
  return {};
}

Result<> Model::Training::check_callbacks() const {
  if (stages() == nullptr) return {};
  const auto gathering = std::count_if(options_.callbacks.begin(), options_.callbacks.end(),
                                       [](const CallbackPtr& callback) { return callback->gathers(); });
  return Session::current()->collectives().call_all(
      [&](Communicator& all) { return check_equal_gathering(static_cast<std::uint64_t>(gathering), all); });
}

// ---- Steps ------------------------------------------------------------------------------------------------

Result<> Model::Training::make(TrainingLoop::Event event) {
  switch (event) {
    case TrainingLoop::Event::epoch_begin:
      return begin_epoch();
    case TrainingLoop::Event::step:
      return groups_steps() ? make_step_of_group() : make_step();
    case TrainingLoop::Event::epoch_end:
      return end_epoch();
    case TrainingLoop::Event::end:
      return end();
    case TrainingLoop::Event::done:
      break;
  }
  return {};
}

Result<> Model::Training::begin_epoch() {
  context_->cur_epoch_num = loop_.epoch() + 1;
  note_train_epoch(context_->cur_epoch_num);
  if (loop_.is_resumed()) return {};
  context_->eval_results.clear();
  return call(&Callback::on_train_epoch_begin);
}

bool Model::Training::evaluates_after(std::int64_t epoch) const {
  return options_.valid_epochs ? options_.valid_epochs->contains(epoch)
                               : epoch % options_.valid_frequency == 0;
}

std::string Model::Training::evaluated_epochs() const {
  if (options_.valid_epochs)
    return fmt::format("after the epochs {}", fmt::join(*options_.valid_epochs, ", "));
  return fmt::format("every {} epochs", options_.valid_frequency);
}

Result<> Model::Training::end_epoch() {
  if (options_.valid_dataset && evaluates_after(context_->cur_epoch_num)) MUSTER_TRY_VOID(validate());
  if (step_is_aborted()) return {};
  return call(&Callback::on_train_epoch_end);
}

Result<> Model::Training::end() {
  note_train_epoch(0);
  MUSTER_TRY_VOID(call(&Callback::on_train_end));
  return loop_.recovers() ? Result<>{} : hand_out_now(&TrainingLoop::point_of_end);
}

Result<> Model::Training::make_step() {
  const data::Item batch = loop_.take_item();
  ++context_->cur_step_num;
  const ShownBatch shown(*context_, batch);
  MUSTER_TRY_VOID(begin_step());
  MUSTER_TRY_VOID(step(batch));
  if (step_is_aborted()) return {};
  MUSTER_TRY_VOID(call(&Callback::on_train_step_end));
  return save_point_if_due();
}

// The steps of an epoch with callbacks around all of them.
Result<> Model::Training::make_step_of_group() {
  const data::Item batch = loop_.take_item();
  if (!std::exchange(group_has_begun_, true)) MUSTER_TRY_VOID(begin_step());
  MUSTER_TRY_VOID(step(batch));
  if (step_is_aborted()) return {};
  ++context_->cur_step_num;
  if (loop_.step_in_epoch() < options_.sink_size) return {};
  group_has_begun_ = false;
  MUSTER_TRY_VOID(call(&Callback::on_train_step_end));
  return save_point_if_due();
}

// Not once more for a step that is made anew in the same process.
Result<> Model::Training::begin_step() {
  if (std::exchange(step_has_begun_, false)) return {};
  return call(&Callback::on_train_step_begin);
}

bool Model::Training::has_statistics() const {
  return std::ranges::any_of(model_.train_network_->parameters(),
                             [](const graph::ParameterPtr& each) { return each->is_statistic(); });
}

// A resumed training draws the random numbers that an unbroken one would.
Result<> Model::Training::step(std::span<const Tensor> batch) {
  const ActivityScope computing(cluster::WorkPhase::computing);
  note_step_of_model(*context_, batch);
  if (loop_.recovers()) MUSTER_TRY_VOID(ready_for_loss());
  if (ServedParameters* const served = process().served_parameters) {
    const data::Item* next = nullptr;
    if (served->wants_next_batch()) {
      MUSTER_TRY(next, loop_.look_ahead());
    }
    served->begin_step(batch, next);
  }
  const std::uint64_t writes = graph::parameter_writes();
  auto done = run_step(*model_.train_network_, batch, step_number_++, commits_ ? &commit_step : nullptr);
  // Code that runs op by op may have written something before a call that failed, and moving statistics are
  // written anywhere in a run.
  if (!done && loop_.recovers() && (graph::parameter_writes() != writes || has_statistics()))
    loop_.call()->set_memory({.spoilt_by = "the step that failed may have changed parameters or statistics"});
  MUSTER_TRY(std::vector<Tensor> outputs, std::move(done));
  if (step_is_aborted()) return {};
  context_->net_outputs = std::move(outputs);
  note_batch(batch);
  if (context_->batch_types.empty())
    for (const Tensor& column : batch) context_->batch_types.push_back({column.dtype(), column.shape()});
  loop_.complete_step();
  step_has_begun_ = false;
  ++model_.steps_;
  if (Session* session = Session::current()) session->membership().report_step(model_.steps_);
  note_step();
  return {};
}

// ---- Evaluations ------------------------------------------------------------------------------------------

// The metrics of an evaluation of fit: those of the model, and the loss.
NamedMetrics Model::Training::evaluated() const {
  NamedMetrics metrics = model_.options_.metrics;
  if (model_.options_.loss_fn != nullptr) metrics.emplace_back("eval_loss", eval_loss_);
  return metrics;
}

// Before the first step of an attempt: who evaluates what. Also in a training without evaluations, of which
// others may have some.
Result<> Model::Training::agree_on_evaluations() {
  shares_ = {};
  if (model_.options_.evaluation != Evaluation::all_workers || !model_.trains_together()) return {};
  EvaluationFacts facts{.evaluates = options_.valid_dataset.has_value()};
  if (facts.evaluates) facts = evaluation_facts(*options_.valid_dataset, evaluated(), evaluated_epochs());
  MUSTER_TRY_VOID(Session::current()->collectives().call_all([&](Communicator& workers) -> Result<> {
    MUSTER_TRY(shares_, agree_on_shares(facts, workers));
    return {};
  }));
  if (!facts.evaluates) return {};
  warn_of_evaluation(shares_.note);
  if (!shares_.counted.empty()) warn_of_evaluation(alone_text(evaluated()));
  return {};
}

Result<> Model::Training::validate() {
  const bool commits = shares_.is_together && makes_steps_together() && stages() == nullptr;
  if (loop_.recovers() && commits) MUSTER_TRY_VOID(loop_.offer_memory());
  MetricValues values;
  const std::vector<Tensor> outputs = std::exchange(context_->net_outputs, {});
  const std::int64_t steps = std::exchange(context_->cur_step_num, 0);
  const std::int64_t batch_num = context_->batch_num;
  context_->mode = CallbackContext::Mode::eval;
  context_->eval_network = model_.eval_network_;
  const Result<> done = evaluate(values);
  context_->mode = CallbackContext::Mode::train;
  context_->net_outputs = outputs;
  context_->cur_step_num = steps;
  context_->batch_num = batch_num;
  model_.train_network_->set_train();
  MUSTER_TRY_VOID(done);
  if (step_is_aborted()) return {};
  for (auto& value : values) context_->eval_results.push_back(std::move(value));
  note_metrics(context_->eval_results);
  print_results();
  return {};
}

Result<> Model::Training::evaluate(MetricValues& values) {
  const NamedMetrics metrics = evaluated();
  Merge merge_all;
  if (shares_.is_together) merge_all = [this](const NamedMetrics& counted) { return merge(counted); };
  MUSTER_TRY(values, model_.evaluate(*options_.valid_dataset, *context_, metrics, merge_all));
  if (step_is_aborted()) return {};
  return shares_.is_together && shares_.counted.empty() ? compare(values) : Result<>{};
}

Result<> Model::Training::merge(const NamedMetrics& metrics) {
  if (shares_.counted.empty()) return {};
  MUSTER_TRY(const MetricCounts mine, counts_of(metrics));
  std::vector<MetricCounts> counts;
  MUSTER_TRY_VOID(evaluate_with_others([&](Communicator& workers) -> Result<> {
    MUSTER_TRY(counts, gather_counts(mine, shares_, workers));
    return {};
  }));
  return step_is_aborted() ? Result<>{} : merge_counts(metrics, counts);
}

// Of workers that have all read all rows.
Result<> Model::Training::compare(const MetricValues& values) {
  std::string difference;
  MUSTER_TRY_VOID(evaluate_with_others([&](Communicator& workers) -> Result<> {
    MUSTER_TRY(difference, compare_values(values, workers));
    return {};
  }));
  warn_of_evaluation(difference);
  return {};
}

// The one collective call of an evaluation. As a step: where a worker is lost before all have what they need
// of it, all evaluate again.
Result<> Model::Training::evaluate_with_others(const Collectives::GroupCall& call) {
  MUSTER_TRY_VOID(in_evaluation(call));
  return loop_.recovers() && stages() == nullptr ? loop_.call()->commit() : Result<>{};
}

// Where no callback does.
void Model::Training::print_results() const {
  const bool is_shown = std::any_of(options_.callbacks.begin(), options_.callbacks.end(),
                                    [](const CallbackPtr& callback) { return callback->shows_results(); });
  if (is_shown || model_.options_.evaluation != Evaluation::all_workers || rank() != 0) return;
  print_line(fmt::format("epoch {}/{}: {}", context_->cur_epoch_num, context_->epoch_num,
                         results_text(context_->eval_results)));
}

}  // namespace muster::train
