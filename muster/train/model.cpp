#include "muster/train/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "muster/train/aborted_step.h"
#include "muster/train/activity_scope.h"
#include "muster/train/agreement.h"
#include "muster/train/batches.h"
#include "muster/train/context.h"
#include "muster/train/data_settings.h"
#include "muster/train/divided_parameters.h"
#include "muster/train/explain.h"
#include "muster/train/front_end.h"
#include "muster/train/job.h"
#include "muster/train/kept_modes.h"
#include "muster/train/metrics.h"
#include "muster/train/model_steps.h"
#include "muster/train/model_training.h"
#include "muster/train/parameter_servers.h"
#include "muster/train/parameters.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/process.h"
#include "muster/train/run_context.h"
#include "muster/train/session.h"
#include "muster/train/step_planner.h"
#include "muster/train/updates.h"

namespace muster::train {
namespace {

// Of a mesh with stages each computes something.
Result<> check_stages_are_used(const graph::Partition& partition) {
  for (const graph::Stage& stage : partition.stages)
    if (stage.nodes == 0)
      return fail(
          Code::invalid_argument,
          fmt::format("the mesh has {} stages, and nothing of the network is on stage {}: place cells "
                      "there, Cell.place(rank={})",
                      partition.stages.size(), stage.rank, stage.rank));
  return {};
}

// What all workers are to say alike. What a search has found is not: who comes back to it does not know it
// yet.
std::string mesh_of_script() {
  const StepPlanner* const planner = process().planner;
  if (planner != nullptr && planner->is_searched()) return "searched for";
  return context().mesh;
}

// The workers of one stage hold the same parameters, whichever copy of the network they work on.
Result<> check_agreement_of_copies(const nn::Cell& cell) {
  MUSTER_TRY(const PipelineLayout now, pipeline_layout());
  if (now.replicas == 1) return {};
  std::vector<NamedTensor> values;
  for (const graph::ParameterPtr& parameter : cell.parameters())
    if (parameter->absence() == nullptr && !parameter->is_statistic() && !parameter->share())
      values.push_back({parameter->name(), parameter->materialize(seed())});
  return Session::current()->collectives().call(now.stages, [&](Communicator& group) {
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
    one_step_ = std::make_shared<nn::TrainOneStepCell>(forward, options_.optimizer,
                                                       nn::TrainOneStepOptions{.has_aux = true});
    one_step_->set_train();
    train_network_ = one_step_;
  } else {
    train_network_ = options_.network;
  }
  eval_network_ = options_.eval_network;
  if (eval_network_ == nullptr && options_.loss_fn != nullptr)
    eval_network_ =
        std::make_shared<nn::WithEvalCell>(options_.network, options_.loss_fn, options_.amp_level != "O0");
  for (const nn::CellPtr& cell : {train_network_, eval_network_, options_.network})
    if (cell != nullptr) cell->replicate_outputs();
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
  if (const auto* const step = dynamic_cast<const nn::TrainOneStepCell*>(options_.network.get());
      step != nullptr && context->optimizer == nullptr)
    context->optimizer = step->optimizer();
  context->list_callback = callbacks;
  if (mode == CallbackContext::Mode::train)
    context->train_network = train_network_;
  else
    context->eval_network = eval_network_;
  return context;
}

// ---- In a divided job -------------------------------------------------------------------------------------

Result<> Model::check_equal_division(const nn::Cell& cell) const {
  MUSTER_TRY(const PipelineLayout now, pipeline_layout());
  Session* const session = Session::current();
  const bool meets =
      session != nullptr && session->membership().world_size() > 1 &&
      (now.divides() || context().shares_batch || context().parallel_mode == ParallelMode::data_parallel);
  if (!meets) return {};
  const std::vector<PlacedCell> places = placed_cells(cell);
  return session->collectives()
      .call_all([&](Communicator& all) { return check_equal_places(places, all); })
      .map_error([&](Error error) {
        if (error.code != Code::invalid_argument && !places.empty())
          error.message += fmt::format(" (while asking all workers whether they have placed {} ({}) too)",
                                       places.front().what, places.front().line);
        return error;
      });
}

Batches Model::batches_of(const data::Dataset& dataset, std::uint64_t& passes, const nn::Cell& cell) const {
  Batches batches(dataset, passes);
  Communicator* const workers = stages();
  if (workers == nullptr) return batches;
  const std::size_t columns = dataset.columns().size();
  const std::size_t inputs = options_.loss_fn != nullptr && columns > 1 ? columns - 1 : columns;
  const std::optional<std::uint32_t> user = nn::input_consumer(*options_.network, inputs);
  batches.divide(*workers, user.value_or(first_placed_rank(cell)));
  return batches;
}

Result<> Model::divide(nn::Cell& cell, Batches& batches) {
  if (stages() == nullptr) return {};
  MUSTER_TRY(const data::Item batch, batches.peek());
  MUSTER_TRY(const graph::RunContext context, tracing_context());
  MUSTER_TRY(const graph::Explanation explanation, cell.explain(batch, context));
  MUSTER_TRY_VOID(check_placed_were_called(cell));
  MUSTER_TRY_VOID(Session::current()->collectives().call_all(
      [&](Communicator& all) { return check_equal_networks(explanation.partition.fingerprint, all); }));
  if (train::context().mesh_stages > 1) MUSTER_TRY_VOID(check_stages_are_used(explanation.partition));
  MUSTER_TRY_VOID(check_agreement_of_copies(cell));
  batches.pass_on(explanation.partition.reader);
  return {};
}

Result<std::vector<checkpoint::Entry>> Model::gather_parameters() {
  const PipelineLayoutScope mine(networks());
  return train::gather_parameters(options_.network->parameters());
}

// ---- Training ---------------------------------------------------------------------------------------------

Result<> Model::train(const TrainOptions& options) {
  const PipelineLayoutScope mine(networks());
  if (shows_steps()) return explain_and_end({.dataset = options.dataset});
  MUSTER_TRY_VOID(require_init("Model.train"));
  const TrainingUnderWay under_way;
  return Training(*this, options).run();
}

Result<> Model::check_agreement_of_workers(std::int64_t steps_an_epoch, const data::Dataset& dataset) {
  std::optional<Reduction> reduction;
  if (trains_together()) reduction = context().gradients_mean ? Reduction::mean : Reduction::sum;
  if (one_step_ != nullptr) one_step_->set_reduction(reduction, context().buckets);
  Session* const session = Session::current();
  const bool shares_batch = world_size() > 1 && context().shares_batch;
  if (!reduction && !shares_batch) return {};
  Collectives& collectives = session->collectives();
  MUSTER_TRY_VOID(
      collectives.call_all([&](Communicator& all) { return check_equal_steps(steps_an_epoch, all); }));
  // Rows of a whole source only: a part that a script cut out itself may well have another size.
  const bool is_whole = dataset.num_shards() > 1 || (shares_batch && stages() == nullptr);
  const cluster::Traits traits = {
      {"seed", fmt::format("{}", seed())},
      {"the data's seed", fmt::format("{}", data_settings().seed.value_or(seed()))},
      {"the dataset's number of rows", is_whole ? fmt::format("{}", dataset.source_rows()) : ""},
      {"the dataset's shard_id (over a mesh every worker is given the whole batch: leave num_shards and "
       "shard_id away)",
       shares_batch ? fmt::format("{}", dataset.shard().index) : ""},
      {"the mesh (parallel.mesh or parallel.plan)", shares_batch ? mesh_of_script() : ""}};
  // Parts of one batch, and of one parameter, that differ fit nothing.
  const bool is_strict = shares_batch || session->membership().is_strict();
  MUSTER_TRY_VOID(
      collectives.call_all([&](Communicator& all) { return compare_traits(traits, is_strict, all); }));
  const std::vector<graph::ParameterPtr> parameters = train_network_->parameters();
  if (world_size() > 1) MUSTER_TRY_VOID(check_no_layerwise(parameters));
  if (shares_batch)
    MUSTER_TRY_VOID(
        collectives.call_all([&](Communicator& all) { return check_equal_layouts(parameters, all); }));
  if (!session->membership().roster().servers.empty() && stages() == nullptr)
    MUSTER_TRY_VOID(
        collectives.call_all([&](Communicator& all) { return check_equal_marks(parameters, all); }));
  MUSTER_TRY_VOID(
      collectives.call_all([&](Communicator& all) { return check_pieces_of_one_save(parameters, all); }));
  for (const graph::ParameterPtr& parameter : parameters) parameter->set_piece_source({});  // they fit
  if (stages() != nullptr) return {};  // each has its part only: see divide()
  std::vector<NamedTensor> values;
  for (const graph::ParameterPtr& parameter : parameters)
    if (!parameter->is_statistic() && !parameter->share() && is_equal_in_workers(*parameter))
      values.push_back({parameter->name(), parameter->materialize(seed())});
  return collectives.call_all([&](Communicator& all) { return check_agreement(values, all); });
}

// ---- Explaining -------------------------------------------------------------------------------------------

Result<graph::Explanation> Model::explain(const ExplainOptions& options) {
  const PipelineLayoutScope mine(networks());
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
  if (options.train && explained_workers() > 1) MUSTER_TRY_VOID(share_as_explained());
  MUSTER_TRY(const graph::RunContext context, tracing_context());
  return cell->explain(batch, context);
}

// As check_agreement_of_workers and Training::open do in a job.
Result<> Model::share_as_explained() {
  if (one_step_ == nullptr) return {};
  if (context().parallel_mode == ParallelMode::data_parallel)
    one_step_->set_reduction(context().gradients_mean ? Reduction::mean : Reduction::sum, context().buckets);
  return divide_optimizer(*one_step_->optimizer());
}

// In a process that `muster explain` has started; an error that comes before.
Result<> Model::explain_and_end(const ExplainOptions& options) {
  MUSTER_TRY(const graph::Explanation explanation, explain(options));
  end_explained({&explanation, 1});
}

bool Model::is_divided() const {
  const PipelineLayoutScope mine(networks());
  return stages() != nullptr;
}

std::shared_ptr<const void> Model::predicting() const {
  auto kept = std::make_shared<const KeptModes>(options_.network);
  options_.network->set_train(false);
  return kept;
}

Result<std::vector<Tensor>> Model::predict(std::span<const Tensor> inputs) {
  const PipelineLayoutScope mine(networks());
  const ActivityScope computing(cluster::WorkPhase::computing);
  const auto mode = predicting();
  auto outputs = run_step(*options_.network, inputs);
  note_finished();
  return outputs;
}

}  // namespace muster::train
