#include "muster/train/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "muster/train/agreement.h"
#include "muster/train/batches.h"
#include "muster/train/context.h"
#include "muster/train/division.h"
#include "muster/train/explain.h"
#include "muster/train/front_end.h"
#include "muster/train/metrics.h"
#include "muster/train/parameters.h"
#include "muster/train/run_context.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

using nn::Value;
using nn::Values;

// `step` numbers what is random in it; an evaluation draws nothing that matters.
Result<std::vector<Tensor>> run_step(nn::Cell& cell, std::span<const Tensor> inputs,
                                     std::optional<std::int64_t> step = {}) {
  MUSTER_TRY_VOID(look_for_interruption());
  graph::RunContext context = run_context();
  if (step) context.step = static_cast<std::uint64_t>(*step);
  const Values given(inputs.begin(), inputs.end());
  std::vector<Tensor> outputs;
  for (const Value& value : cell.call(given, context)) {
    MUSTER_TRY(Tensor tensor, value.read());
    outputs.push_back(std::move(tensor));
  }
  return outputs;
}

Result<> check_columns(const data::Dataset& dataset, bool has_loss_fn, std::string_view what) {
  const std::size_t columns = dataset.columns().size();
  if (!has_loss_fn || columns == 2) return {};
  std::string names;
  for (const data::Column& column : dataset.columns()) names += (names.empty() ? "" : ", ") + column.name;
  return fail(Code::invalid_argument,
              fmt::format("with a loss_fn the {} dataset has two columns, data and label, not {} ({}): leave "
                          "out loss_fn and let the network take all columns and give the loss",
                          what, columns, names));
}

// The workers of one stage hold the same parameters, whichever copy of the network they work on.
Result<> check_agreement_of_copies(const nn::Cell& cell) {
  MUSTER_TRY(const Division now, division());
  if (now.replicas == 1) return {};
  Session& session = *Session::current();
  std::vector<NamedTensor> values;
  for (const graph::ParameterPtr& parameter : cell.parameters())
    if (parameter->absence() == nullptr)
      values.push_back({parameter->name(), parameter->materialize(seed())});
  return session.call_stage_group(now.stages, [&](collective::Communicator& group) {
    return check_agreement(values, group).map_error([&](Error error) {
      if (error.code == Code::invalid_argument)
        error.message += fmt::format(" (a rank here is a copy of the network: rank k is worker {} + {} k)",
                                     now.stage, now.stages);
      return error;
    });
  });
}

}  // namespace

// ---- Making -----------------------------------------------------------------------------------------------

Model::Model(ModelOptions options) : options_(std::move(options)) {
  if (options_.optimizer != nullptr) {
    const nn::CellPtr forward = options_.loss_fn == nullptr
                                    ? options_.network
                                    : std::make_shared<nn::WithLossCell>(options_.network, options_.loss_fn,
                                                                         options_.amp_level != "O0");
    one_step_ = std::make_shared<TrainStepCell>(forward, options_.optimizer);
    train_network_ = one_step_;
  } else {
    train_network_ = options_.network;
  }
  eval_network_ = options_.eval_network;
  if (eval_network_ == nullptr && options_.loss_fn != nullptr)
    eval_network_ =
        std::make_shared<WithEvalCell>(options_.network, options_.loss_fn, options_.amp_level != "O0");
  for (const nn::CellPtr& cell : {train_network_, eval_network_, options_.network})
    if (cell != nullptr) cell->want_outputs_everywhere();
}

Result<std::unique_ptr<Model>> Model::create(ModelOptions options) {
  if (options.network == nullptr) return fail(Code::invalid_argument, "Model: a network is needed");
  if (!options.eval_indexes.empty() && options.eval_indexes.size() != 3)
    return fail(Code::invalid_argument, "Model: eval_indexes are three: of loss, prediction and label");
  if (options.amp_level != "O0" && options.optimizer == nullptr)
    return fail(
        Code::invalid_argument,
        fmt::format("Model: amp_level '{}' is for training, and there is no optimizer: a network by itself "
                    "computes in bfloat16 after auto_mixed_precision",
                    options.amp_level));
  MUSTER_TRY_VOID(nn::auto_mixed_precision(*options.network, {.level = options.amp_level}));
  return std::unique_ptr<Model>(new Model(std::move(options)));
}

std::shared_ptr<CallbackContext> Model::prepared_context(std::shared_ptr<CallbackContext> given,
                                                         CallbackContext::Mode mode,
                                                         const std::vector<CallbackPtr>& callbacks) const {
  auto context = given != nullptr ? std::move(given) : std::make_shared<CallbackContext>();
  context->mode = mode;
  context->network = options_.network;
  context->loss_fn = options_.loss_fn;
  context->optimizer = options_.optimizer;
  context->list_callback = callbacks;
  if (mode == CallbackContext::Mode::train)
    context->train_network = train_network_;
  else
    context->eval_network = eval_network_;
  return context;
}

// ---- In a divided job -------------------------------------------------------------------------------------

Batches Model::batches_of(const data::Dataset& dataset, std::uint64_t& passes, const nn::Cell& cell) const {
  Batches batches(dataset, passes);
  if (graph::Communicator* workers = stages()) batches.divide(*workers, first_placed_rank(cell));
  return batches;
}

Result<> Model::divide(nn::Cell& cell, Batches& batches) {
  if (stages() == nullptr) return {};
  MUSTER_TRY(const data::Item batch, batches.peek());
  MUSTER_TRY(const graph::Explanation explanation, cell.explain(batch, tracing_context()));
  MUSTER_TRY_VOID(check_placed_were_called(cell));
  MUSTER_TRY_VOID(Session::current()->call_all([&](collective::Communicator& all) {
    return check_equal_networks(explanation.parts.fingerprint, all);
  }));
  MUSTER_TRY_VOID(check_agreement_of_copies(cell));
  batches.pass_on(explanation.parts.reader);
  return {};
}

Result<std::vector<checkpoint::Entry>> Model::gather_parameters() {
  return train::gather_parameters(options_.network->parameters());
}

// ---- Training ---------------------------------------------------------------------------------------------

// One call of Model::train.
class Model::Training {
 public:
  Training(Model& model, const TrainOptions& options)
      : model_(model),
        options_(options),
        context_(model.prepared_context(options.context, CallbackContext::Mode::train, options.callbacks)),
        batches_(model.batches_of(options.dataset, model.passes_, *model.train_network_)) {}

  Result<> run() {
    MUSTER_TRY_VOID(prepare());
    MUSTER_TRY_VOID(call(&Callback::on_train_begin));
    for (std::int64_t epoch = options_.initial_epoch; epoch < options_.epochs; ++epoch) {
      if (context_->stop_requested()) break;
      MUSTER_TRY_VOID(run_epoch(epoch + 1));
    }
    return call(&Callback::on_train_end);
  }

 private:
  bool groups_steps() const { return options_.dataset_sink_mode && options_.sink_size > 0; }

  Result<> prepare() {
    MUSTER_TRY_VOID(division());
    MUSTER_TRY_VOID(check_places(*model_.train_network_));
    MUSTER_TRY_VOID(check_shards(options_.dataset));
    if (options_.epochs < 1 || options_.initial_epoch < 0)
      return fail(Code::invalid_argument,
                  fmt::format("train: epochs is {} and initial_epoch {}: at least 1 and 0 are needed",
                              options_.epochs, options_.initial_epoch));
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
    if (options_.valid_frequency < 1)
      return fail(Code::invalid_argument, "train: valid_frequency counts epochs from 1");
    MUSTER_TRY(const std::int64_t steps, batches_.count("training"));
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
    context_->batch_num = groups_steps() ? options_.sink_size : steps;
    context_->epoch_num = options_.epochs;
    context_->evaluates = options_.valid_dataset.has_value();
    context_->dataset_sink_mode = options_.dataset_sink_mode;
    context_->cur_step_num = options_.initial_epoch * context_->batch_num;
    step_number_ =
        options_.initial_epoch > 0 ? context_->cur_step_num : static_cast<std::int64_t>(model_.steps_);
    if (options_.initial_epoch > 0) model_.passes_ = static_cast<std::uint64_t>(options_.initial_epoch);
    model_.train_network_->set_train();
    MUSTER_TRY_VOID(model_.check_agreement_of_workers(context_->batch_num));
    MUSTER_TRY_VOID(check_callbacks());
    return model_.divide(*model_.train_network_, batches_);
  }

  Result<> check_callbacks() const {
    if (stages() == nullptr) return {};
    const auto gathering = std::count_if(options_.callbacks.begin(), options_.callbacks.end(),
                                         [](const CallbackPtr& callback) { return callback->gathers(); });
    return Session::current()->call_all([&](collective::Communicator& all) {
      return check_equal_gathering(static_cast<std::uint64_t>(gathering), all);
    });
  }

  Result<> run_epoch(std::int64_t number) {
    context_->cur_epoch_num = number;
    context_->eval_results.clear();
    MUSTER_TRY_VOID(call(&Callback::on_train_epoch_begin));
    MUSTER_TRY_VOID(groups_steps() ? run_group() : run_steps());
    if (options_.valid_dataset && number % options_.valid_frequency == 0) MUSTER_TRY_VOID(validate());
    return call(&Callback::on_train_epoch_end);
  }

  Result<> run_steps() {
    while (!context_->stop_requested()) {
      MUSTER_TRY(const std::optional<data::Item> batch, batches_.next());
      if (!batch) return {};
      ++context_->cur_step_num;
      MUSTER_TRY_VOID(call(&Callback::on_train_step_begin));
      MUSTER_TRY_VOID(step(*batch));
      MUSTER_TRY_VOID(call(&Callback::on_train_step_end));
    }
    return {};
  }

  // The steps of an epoch with callbacks around all of them.
  Result<> run_group() {
    MUSTER_TRY_VOID(call(&Callback::on_train_step_begin));
    for (std::int64_t i = 0; i < options_.sink_size; ++i) {
      MUSTER_TRY(const data::Item batch, batches_.next_of_any_pass());
      MUSTER_TRY_VOID(step(batch));
      ++context_->cur_step_num;
    }
    return call(&Callback::on_train_step_end);
  }

  // A resumed training draws the random numbers that an unbroken one would.
  Result<> step(std::span<const Tensor> batch) {
    MUSTER_TRY(context_->net_outputs, run_step(*model_.train_network_, batch, step_number_++));
    ++model_.steps_;
    if (Session* session = Session::current()) session->report_step(model_.steps_);
    return {};
  }

  Result<> validate() {
    const std::vector<Tensor> outputs = std::exchange(context_->net_outputs, {});
    const std::int64_t steps = std::exchange(context_->cur_step_num, 0);
    const std::int64_t batch_num = context_->batch_num;
    context_->mode = CallbackContext::Mode::eval;
    context_->eval_network = model_.eval_network_;
    NamedMetrics metrics = model_.options_.metrics;
    if (model_.options_.loss_fn != nullptr) metrics.emplace_back("eval_loss", std::make_shared<Loss>());
    MUSTER_TRY_VOID(model_.evaluate(*options_.valid_dataset, *context_, metrics));
    for (const auto& [name, metric] : metrics) {
      MUSTER_TRY(MetricValue value, metric->eval());
      context_->eval_results.emplace_back(name, std::move(value));
    }
    context_->mode = CallbackContext::Mode::train;
    context_->net_outputs = outputs;
    context_->cur_step_num = steps;
    context_->batch_num = batch_num;
    model_.train_network_->set_train();
    return {};
  }

  Result<> call(CallbackMethod method) { return call_each(options_.callbacks, method, *context_); }

  Model& model_;
  const TrainOptions& options_;
  std::shared_ptr<CallbackContext> context_;
  Batches batches_;
  std::int64_t step_number_ = 0;  // of the next step, from 0
};

Result<> Model::train(const TrainOptions& options) {
  if (explain_mode() == ExplainMode::plan) return explain_and_end({.dataset = options.dataset});
  return Training(*this, options).run();
}

Result<> Model::check_agreement_of_workers(std::int64_t steps_an_epoch) {
  Session* session = Session::current();
  const bool together = session != nullptr && session->world_size() > 1 &&
                        context().parallel_mode == ParallelMode::data_parallel;
  std::optional<graph::Reduction> reduction;
  if (together) reduction = context().gradients_mean ? graph::Reduction::mean : graph::Reduction::sum;
  if (one_step_ != nullptr) one_step_->set_reduction(reduction, context().buckets);
  if (!together) return {};
  MUSTER_TRY_VOID(session->call_all(
      [&](collective::Communicator& all) { return check_equal_steps(steps_an_epoch, all); }));
  if (stages() != nullptr) return {};  // each has its part only: see divide()
  std::vector<NamedTensor> values;
  for (const graph::ParameterPtr& parameter : train_network_->parameters())
    values.push_back({parameter->name(), parameter->materialize(seed())});
  return session->call_all([&](collective::Communicator& all) { return check_agreement(values, all); });
}

// ---- Evaluation -------------------------------------------------------------------------------------------

Result<MetricValues> Model::eval(const EvalOptions& options) {
  if (options_.metrics.empty())
    return fail(Code::invalid_argument,
                "eval: the model was made without metrics: there is nothing to count");
  if (explain_mode() == ExplainMode::plan)
    return fail(explain_and_end({.dataset = options.dataset, .train = false}).error());
  const auto context = prepared_context(options.context, CallbackContext::Mode::eval, options.callbacks);
  MUSTER_TRY_VOID(evaluate(options.dataset, *context, options_.metrics));
  MetricValues values;
  for (const auto& [name, metric] : options_.metrics) {
    MUSTER_TRY(MetricValue value, metric->eval());
    values.emplace_back(name, std::move(value));
  }
  return values;
}

Result<> Model::evaluate(const data::Dataset& dataset, CallbackContext& context,
                         const NamedMetrics& metrics) {
  if (eval_network_ == nullptr)
    return fail(Code::invalid_argument,
                "eval: the model needs a loss_fn, or an eval_network that gives loss, outputs and label");
  std::uint64_t passes = 0;
  MUSTER_TRY_VOID(division());
  MUSTER_TRY_VOID(check_places(*eval_network_));
  MUSTER_TRY_VOID(check_shards(dataset));
  Batches batches = batches_of(dataset, passes, *eval_network_);
  MUSTER_TRY(context.batch_num, batches.count("validation"));
  MUSTER_TRY_VOID(check_columns(dataset, options_.eval_network == nullptr, "validation"));
  eval_network_->set_train(false);
  MUSTER_TRY_VOID(divide(*eval_network_, batches));
  for (const auto& [name, metric] : metrics) MUSTER_TRY_VOID(metric->clear());
  const auto call = [&](CallbackMethod method) { return call_each(context.list_callback, method, context); };
  context.cur_step_num = 0;
  MUSTER_TRY_VOID(call(&Callback::on_eval_begin));
  MUSTER_TRY_VOID(call(&Callback::on_eval_epoch_begin));
  while (true) {
    MUSTER_TRY(const std::optional<data::Item> batch, batches.next());
    if (!batch) break;
    ++context.cur_step_num;
    MUSTER_TRY_VOID(call(&Callback::on_eval_step_begin));
    MUSTER_TRY(context.net_outputs, run_step(*eval_network_, *batch));
    MUSTER_TRY_VOID(update_metrics(context.net_outputs, metrics));
    MUSTER_TRY_VOID(call(&Callback::on_eval_step_end));
  }
  MUSTER_TRY_VOID(call(&Callback::on_eval_epoch_end));
  return call(&Callback::on_eval_end);
}

Result<> Model::update_metrics(const std::vector<Tensor>& outputs, const NamedMetrics& metrics) const {
  const std::vector<std::size_t> usual =
      options_.eval_indexes.empty() ? std::vector<std::size_t>{0, 1, 2} : options_.eval_indexes;
  for (const auto& [name, metric] : metrics) {
    std::vector<std::size_t> wanted{usual[1], usual[2]};
    if (metric->wants_loss()) wanted = {usual[0]};
    if (metric->indexes()) wanted = *metric->indexes();
    std::vector<Tensor> given;
    for (const std::size_t index : wanted) {
      if (index >= outputs.size())
        return fail(Code::invalid_argument,
                    fmt::format("metric '{}' wants output {} of the evaluation, which gives {}", name, index,
                                outputs.size()));
      given.push_back(outputs[index]);
    }
    MUSTER_TRY_VOID(metric->update(given));
  }
  return {};
}

// ---- Explaining -------------------------------------------------------------------------------------------

Result<graph::Explanation> Model::explain(const ExplainOptions& options) {
  const nn::CellPtr& cell = options.train ? train_network_ : eval_network_;
  if (cell == nullptr)
    return fail(Code::invalid_argument,
                "explain: the model evaluates nothing: it needs a loss_fn or an eval_network");
  MUSTER_TRY_VOID(check_columns(
      options.dataset, options.train ? options_.loss_fn != nullptr : options_.eval_network == nullptr,
      options.train ? "training" : "validation"));
  std::uint64_t passes = 0;
  MUSTER_TRY(const data::Item batch, Batches(options.dataset, passes).next_of_any_pass());
  cell->set_train(options.train);
  return cell->explain(batch, tracing_context());
}

// In a process that `muster explain` has started; an error that comes before.
Result<> Model::explain_and_end(const ExplainOptions& options) {
  MUSTER_TRY(const graph::Explanation explanation, explain(options));
  end_explained({&explanation, 1});
}

Result<std::vector<Tensor>> Model::predict(std::span<const Tensor> inputs) {
  options_.network->set_train(false);
  return run_step(*options_.network, inputs);
}

}  // namespace muster::train
