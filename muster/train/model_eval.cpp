// Evaluations: of this worker alone, or of which each worker makes a share (ADR 36); and in a job that
// recovers, where a process that returns is given what they gave before.
#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <utility>

#include "muster/train/aborted_step.h"
#include "muster/train/activity_scope.h"
#include "muster/train/batches.h"
#include "muster/train/context.h"
#include "muster/train/explain.h"
#include "muster/train/kept_modes.h"
#include "muster/train/metrics.h"
#include "muster/train/model.h"
#include "muster/train/model_steps.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/process.h"
#include "muster/train/recovering_call.h"
#include "muster/train/run_context.h"
#include "muster/train/session.h"
#include "muster/train/shared_evaluation.h"

namespace muster::train {
namespace {

// Evaluations of a worker by itself are no calls of all: they are told apart from those by the first bit, and
// numbered anew behind each of them.
std::uint64_t number_of_eval(const CallNumbers& calls) {
  return std::uint64_t{1} << 63 | calls.begun << 24 | calls.evals;
}

std::int64_t rows_of(const data::Item& batch, bool is_batched) {
  return is_batched && !batch.empty() && batch[0].shape().rank() > 0 ? batch[0].shape()[0] : 1;
}

}  // namespace

Result<Evaluation> evaluation_from_string(std::string_view name) {
  if (name == "all_workers") return Evaluation::all_workers;
  if (name == "mindspore") return Evaluation::mindspore;
  return fail(Code::invalid_argument,
              fmt::format("evaluation '{}' is not known; choose 'all_workers' or 'mindspore'", name));
}

bool Model::trains_together() const {
  Session* const session = Session::current();
  return session != nullptr && session->membership().world_size() > 1 &&
         context().parallel_mode == ParallelMode::data_parallel;
}

bool Model::shares_evaluation(const data::Dataset& dataset) const {
  return options_.evaluation == Evaluation::all_workers && trains_together() && dataset.num_shards() > 1;
}

Result<MetricValues> Model::eval(const EvalOptions& options) {
  const PipelineLayoutScope mine(networks());
  if (options_.metrics.empty())
    return fail(Code::invalid_argument,
                "eval: the model was made without metrics: there is nothing to count");
  if (explain_mode() == ExplainMode::plan)
    return fail(explain_and_end({.dataset = options.dataset, .train = false}).error());
  const KeptModes kept(eval_network_);
  Recovery* const recovery = options.recovery != nullptr ? options.recovery : recovery_of_session();
  if (recovery == nullptr || recovery->calls().inside) return eval_once(options);
  const bool is_of_all = stages() != nullptr || shares_evaluation(options.dataset);
  return is_of_all ? eval_together(options, *recovery) : eval_alone(options, *recovery);
}

Result<MetricValues> Model::eval_once(const EvalOptions& options) {
  const auto context = prepared_context(options.context, CallbackContext::Mode::eval, options.callbacks);
  Merge merge;
  if (shares_evaluation(options.dataset))
    merge = [&](const NamedMetrics& metrics) -> Result<> {
      MUSTER_TRY(const MetricCounts mine, counts_of(metrics));
      const EvaluationFacts facts = evaluation_facts(options.dataset, metrics);
      std::vector<MetricCounts> counts;
      MUSTER_TRY_VOID(in_evaluation([&](Communicator& workers) -> Result<> {
        MUSTER_TRY(const EvaluationShares shares, agree_on_shares(facts, workers));
        warn_of_evaluation(shares.note);
        MUSTER_TRY(counts, gather_counts(mine, shares, workers));
        return {};
      }));
      if (step_is_aborted()) return {};
      warn_of_evaluation(alone_text(metrics));
      return merge_counts(metrics, counts);
    };
  MUSTER_TRY(MetricValues values, evaluate(options.dataset, *context, options_.metrics, merge));
  if (step_is_aborted())
    for (const auto& [name, metric] : options_.metrics)
      values.emplace_back(name, std::numeric_limits<double>::quiet_NaN());
  return values;
}

Result<MetricValues> Model::evaluate(const data::Dataset& dataset, CallbackContext& context,
                                     const NamedMetrics& metrics, const Merge& merge) {
  if (eval_network_ == nullptr)
    return fail(Code::invalid_argument,
                "eval: the model needs a loss_fn, or an eval_network that gives loss, outputs and label");
  const ActivityScope evaluating(cluster::WorkPhase::evaluating);
  std::uint64_t passes = 0;
  MUSTER_TRY_VOID(pipeline_layout());
  MUSTER_TRY_VOID(check_places(*eval_network_));
  MUSTER_TRY_VOID(check_shards(dataset));
  if (stages() != nullptr) MUSTER_TRY_VOID(check_equal_division(*eval_network_));
  Batches batches = batches_of(dataset, passes, *eval_network_);
  if (merge != nullptr) batches.leave_out_padding();
  MUSTER_TRY(context.batch_num, batches.count("validation"));
  MUSTER_TRY_VOID(check_columns(dataset, options_.eval_network == nullptr, "validation"));
  eval_network_->set_train(false);
  MUSTER_TRY_VOID(divide(*eval_network_, batches));
  FirstWorkersStatistics statistics(*eval_network_);
  if (merge != nullptr && stages() == nullptr && !statistics.empty())
    MUSTER_TRY_VOID(in_evaluation([&](Communicator& workers) { return statistics.take(workers); }));
  for (const auto& [name, metric] : metrics)
    MUSTER_TRY_VOID(catch_error([&metric] { return metric->clear(); }));
  const auto call = [&](CallbackMethod method) { return call_each(context.list_callback, method, context); };
  context.cur_step_num = 0;
  MUSTER_TRY_VOID(call(&Callback::on_eval_begin));
  MUSTER_TRY_VOID(call(&Callback::on_eval_epoch_begin));
  MUSTER_TRY_VOID(evaluate_batches(batches, context, metrics, dataset.is_batched()));
  if (merge != nullptr && !step_is_aborted()) MUSTER_TRY_VOID(merge(metrics));
  context.metrics.clear();
  if (step_is_aborted()) return MetricValues{};
  for (const auto& [name, metric] : metrics) {
    MUSTER_TRY(MetricValue value, catch_error([&metric] { return metric->eval(); }));
    context.metrics.emplace_back(name, std::move(value));
  }
  MUSTER_TRY_VOID(call(&Callback::on_eval_epoch_end));
  MUSTER_TRY_VOID(call(&Callback::on_eval_end));
  return step_is_aborted() ? MetricValues{} : context.metrics;
}

namespace {

// Who is slow is told apart by what it does: slow data is that in an evaluation, too.
Result<std::optional<data::Item>> read_batch(Batches& batches) {
  const ActivityScope reading(cluster::WorkPhase::reading_data);
  return batches.next();
}

}  // namespace

Result<> Model::evaluate_batches(Batches& batches, CallbackContext& context, const NamedMetrics& metrics,
                                 bool is_batched) {
  while (true) {
    MUSTER_TRY(const std::optional<data::Item> batch, read_batch(batches));
    if (!batch) return {};
    ++context.cur_step_num;
    const ShownBatch shown(context, *batch);
    MUSTER_TRY_VOID(call_each(context.list_callback, &Callback::on_eval_step_begin, context));
    MUSTER_TRY(std::vector<Tensor> outputs, run_step(*eval_network_, *batch));
    if (step_is_aborted()) return {};
    context.net_outputs = std::move(outputs);
    MUSTER_TRY_VOID(update_metrics(context.net_outputs, rows_of(*batch, is_batched), metrics));
    note_finished();
    MUSTER_TRY_VOID(call_each(context.list_callback, &Callback::on_eval_step_end, context));
  }
}

namespace {

// MindSpore's rule: without eval_indexes a metric is given whatever an eval_network gives. Of the three
// outputs that the page names, (loss, outputs, label), the library's own metrics get those that they take.
bool gives_all(const ModelOptions& options, const std::vector<Tensor>& outputs, const Metric& metric) {
  return options.evaluation == Evaluation::mindspore && options.eval_network != nullptr &&
         options.eval_indexes.empty() && (outputs.size() != 3 || metric.is_of_script());
}

std::vector<std::size_t> places_of(const std::vector<Tensor>& outputs) {
  std::vector<std::size_t> places(outputs.size());
  std::iota(places.begin(), places.end(), 0);
  return places;
}

}  // namespace

Result<> Model::update_metrics(const std::vector<Tensor>& outputs, std::int64_t rows,
                               const NamedMetrics& metrics) const {
  const std::vector<std::size_t> usual =
      options_.eval_indexes.empty() ? std::vector<std::size_t>{0, 1, 2} : options_.eval_indexes;
  for (const auto& [name, metric] : metrics) {
    std::vector<std::size_t> wanted{usual[1], usual[2]};
    if (metric->wants_loss()) wanted = {usual[0]};
    if (gives_all(options_, outputs, *metric)) wanted = places_of(outputs);
    if (metric->indexes()) wanted = *metric->indexes();
    std::vector<Tensor> given;
    for (const std::size_t index : wanted) {
      if (index >= outputs.size())
        return fail(Code::invalid_argument,
                    fmt::format("metric '{}' wants output {} of the evaluation, which gives {}", name, index,
                                outputs.size()));
      given.push_back(outputs[index]);
    }
    if (options_.evaluation == Evaluation::all_workers) metric->set_rows(rows);
    MUSTER_TRY_VOID(catch_error([&metric, &given] { return metric->update(given); }));
  }
  return {};
}

// ---- In a job that recovers -------------------------------------------------------------------------------

Result<MetricValues> Model::eval_alone(const EvalOptions& options, Recovery& recovery) {
  MUSTER_TRY(checkpoint::RunStore * store, recovery.store());
  const std::uint64_t number = number_of_eval(recovery.calls());
  ++recovery.calls().evals;
  if (const auto record = store->finished(number))
    if (auto values = metric_values_from(record->result)) return values;
  MUSTER_TRY(MetricValues values, eval_once(options));
  // What cannot be kept is evaluated again by a process that returns.
  if (auto json = to_json(values)) {
    const auto kept = store->finish_call({.call = number, .kind = "eval", .result = *std::move(json)});
    if (!kept) log::error(fmt::format("the result of an evaluation is not kept: {}", kept.error().message));
  }
  return values;
}

Result<MetricValues> Model::eval_together(const EvalOptions& options, Recovery& recovery) {
  MUSTER_TRY(const auto call, RecoveringCall::begin(recovery, "eval"));
  const auto attempt = [&]() -> Result<MetricValues> {
    bool finished = call->is_finished();
    if (!finished) {
      call->set_memory({.state = checkpoint::Standing::State::fresh});
      MUSTER_TRY(const RecoveringCall::Start start, call->agree());
      finished = start.finished;
    }
    if (finished) {
      MUSTER_TRY(const RecoveringCall::End end, call->end());
      return metric_values_from(end.result);
    }
    MUSTER_TRY(MetricValues values, eval_once(options));
    MUSTER_TRY_VOID(call->finish(std::nullopt, to_json(values).value_or("")));
    return values;
  };
  while (true) {
    Result<MetricValues> values = attempt();
    if (values) return values;
    MUSTER_TRY(const bool again, call->tries_again(values.error()));
    if (!again) return values;
  }
}

}  // namespace muster::train
