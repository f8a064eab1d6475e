// Model: trains, evaluates and predicts with a network.
//
//   train::Model model({.network = net, .loss_fn = loss, .optimizer = optimizer,
//                       .metrics = {{"accuracy", std::make_shared<train::Accuracy>()}}});
//   auto done = model.train({.epochs = 10, .dataset = batches,
//                            .callbacks = {std::make_shared<train::LossMonitor>()}});
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/checkpoint/checkpoint.h"
#include "muster/data/data.h"
#include "muster/graph/explanation.h"  // IWYU pragma: export
#include "muster/nn/nn.h"
#include "muster/train/callback.h"
#include "muster/train/metric.h"

namespace muster::train {

class Batches;
class Recovery;

// How evaluations count, by Model::eval and fit.
enum class Evaluation {
  // In a data-parallel job over all workers: each evaluates its shard of the dataset, and all have the
  // metrics over all rows. The loss is that of the rows, and fit prints the values where no callback does.
  all_workers,
  // Each worker has the metrics of what it was given, the loss is the mean of the batches' losses, and only
  // callbacks print.
  mindspore,
};
// "all_workers" or "mindspore"; an error lists the choices.
Result<Evaluation> evaluation_from_string(std::string_view name);

struct ModelOptions {
  nn::CellPtr network;
  // Called with what the network gives and the label. Without it the network takes all columns and gives the
  // loss itself.
  nn::CellPtr loss_fn = {};
  // Without it the network is a whole training step of its own: it updates what it wants to.
  std::shared_ptr<nn::Optimizer> optimizer = {};
  NamedMetrics metrics = {};
  // Gives (loss, outputs, label) of an evaluation; by default made from network and loss_fn.
  nn::CellPtr eval_network = {};
  // Which outputs of `eval_network` are the loss, the prediction and the label; by default 0, 1, 2.
  std::vector<std::size_t> eval_indexes = {};
  // Mixed precision of the network, as nn/amp.h has it: "O0", "O1", "O2", "O3" or "auto". The loss is
  // float32.
  std::string amp_level = "O0";
  Evaluation evaluation = Evaluation::all_workers;
};

struct TrainOptions {
  std::int64_t epochs = 1;
  data::Dataset dataset;
  std::vector<CallbackPtr> callbacks = {};
  // With it and `sink_size`, an epoch is `sink_size` steps that follow each other without callbacks between.
  bool dataset_sink_mode = false;
  std::int64_t sink_size = -1;
  std::int64_t initial_epoch = 0;  // epochs that an earlier process has trained
  // Where to go on: "last", the newest checkpoint of the ModelCheckpoint among `callbacks` (none yet: the
  // training begins, and a line says so), or the path of one. Parameters, optimizer, counters, the place in
  // the data, random numbers and the states of callbacks are those of that moment: the result is bit-equal to
  // that of a training that was never interrupted. In a job all workers go on from the newest that each has;
  // another number of workers goes on with the rows of the epoch that those of before have not had.
  std::string resume = {};
  // Evaluated after every `valid_frequency`-th epoch, or after `valid_epochs` alone, counted from 1.
  std::optional<data::Dataset> valid_dataset = {};
  std::int64_t valid_frequency = 1;
  std::optional<std::set<std::int64_t>> valid_epochs = {};
  // Splits each batch into so many equal parts that go through the network one after the other, and updates
  // once: for a loss that is a mean over samples and a network without batch statistics the result is the
  // same but for rounding. The workers of a placed network work on different parts at the same time.
  std::int64_t micro_batches = 1;
  // For front ends that want to keep it; else the model makes one.
  std::shared_ptr<CallbackContext> context = {};
  // Where to go on after a loss, borrowed; null: as the session says.
  Recovery* recovery = nullptr;
};

struct ExplainOptions {
  data::Dataset dataset;
  bool train = true;  // a step of training; else of an evaluation
};

struct EvalOptions {
  data::Dataset dataset;
  std::vector<CallbackPtr> callbacks = {};
  std::shared_ptr<CallbackContext> context = {};
  Recovery* recovery = nullptr;  // as in TrainOptions
};

// Forward, loss, gradient, reduction and update of a step are one plan, made once for each signature.
//
// In parallel mode data_parallel gradients are summed over all workers, or averaged with gradients_mean, and
// every train() first proves that all workers hold equal parameters and make as many steps. Passes over the
// dataset are numbered on from those before, or from `initial_epoch`, so that a resumed training shuffles as
// an unbroken one.
//
// Where the network is placed (Cell::place) in a cluster, one worker reads the data and the others learn the
// types of each batch from it; outputs, loss and metrics are the same on all workers. Before the first step
// all prove that they have traced the same network, placed alike.
//
// Threads: one call at a time, on one thread.
class Model {
 public:
  // An error says what is missing or does not fit.
  static Result<std::unique_ptr<Model>> create(ModelOptions options);

  // Also what the front ends call fit, when there is a `valid_dataset`.
  Result<> train(const TrainOptions& options);
  // Counts `metrics` over the dataset. In a data-parallel job whose dataset is cut into shards it is a
  // collective call: all workers get the values over all rows. Where each worker reads all rows, or the
  // option says so, it is a call of this worker alone.
  // In a job that recovers, a process that returns is given the result of before. In a step that is aborted,
  // since a process was lost, all values are NaN.
  Result<MetricValues> eval(const EvalOptions& options);
  // The plan of a step on the first batch of the dataset, which does not run. Made with the parallel mode of
  // the last train().
  Result<graph::Explanation> explain(const ExplainOptions& options);
  // The network's parameters by name, on every worker. In a divided job they come from the workers that have
  // them, and all workers make this call.
  Result<std::vector<checkpoint::Entry>> gather_parameters();
  // The network in its mode of predictions. Within a training, whose callback predicts, its modes come back
  // when the handle goes.
  std::shared_ptr<const void> predicting() const;
  // What the network gives, without training.
  Result<std::vector<Tensor>> predict(std::span<const Tensor> inputs);
  // Whether the workers of this job share the network, each with a part of it.
  bool is_divided() const;

  const nn::CellPtr& network() const { return options_.network; }
  const nn::CellPtr& loss_fn() const { return options_.loss_fn; }
  const std::shared_ptr<nn::Optimizer>& optimizer() const { return options_.optimizer; }
  const nn::CellPtr& train_network() const { return train_network_; }
  const nn::CellPtr& eval_network() const { return eval_network_; }
  const nn::CellPtr& predict_network() const { return options_.network; }
  const NamedMetrics& metrics() const { return options_.metrics; }

 private:
  class Training;

  explicit Model(ModelOptions options);
  // All that is divided alike, so that the workers of one copy stay the same.
  std::array<const nn::Cell*, 3> networks() const {
    return {options_.network.get(), train_network_.get(), eval_network_.get()};
  }
  // Items for steps of `cell`. In a divided job the worker reads that probably uses the first input, until
  // divide() knows better.
  Batches batches_of(const data::Dataset& dataset, std::uint64_t& passes, const nn::Cell& cell) const;
  // Where workers are about to meet: all of them place `cell` alike.
  Result<> check_equal_division(const nn::Cell& cell) const;
  // In a divided job: the plan of a step of `cell` on the next item, which all workers must agree on and
  // which says who reads; it does not run. Elsewhere nothing.
  Result<> divide(nn::Cell& cell, Batches& batches);
  std::shared_ptr<CallbackContext> prepared_context(std::shared_ptr<CallbackContext> given,
                                                    CallbackContext::Mode mode,
                                                    const std::vector<CallbackPtr>& callbacks) const;
  Result<> check_agreement_of_workers(std::int64_t steps_an_epoch, const data::Dataset& dataset);
  Result<> share_as_explained();
  Result<> explain_and_end(const ExplainOptions& options);
  // Whether all workers of this job train together.
  bool trains_together() const;
  bool shares_evaluation(const data::Dataset& dataset) const;
  Result<MetricValues> eval_once(const EvalOptions& options);
  // By this worker alone; by all of them, where the network is divided or the dataset is.
  Result<MetricValues> eval_alone(const EvalOptions& options, Recovery& recovery);
  Result<MetricValues> eval_together(const EvalOptions& options, Recovery& recovery);
  // One pass and its values, which callbacks find in the context. `merge`, where all workers evaluate
  // together, is called behind the last batch. In an aborted step of a loop around it the pass ends where
  // values of the others are lacking: callbacks and metrics are not called any more, and there are no values.
  using Merge = std::function<Result<>(const NamedMetrics&)>;
  Result<MetricValues> evaluate(const data::Dataset& dataset, CallbackContext& context,
                                const NamedMetrics& metrics, const Merge& merge);
  Result<> evaluate_batches(Batches& batches, CallbackContext& context, const NamedMetrics& metrics,
                            bool is_batched);
  Result<> update_metrics(const std::vector<Tensor>& outputs, std::int64_t rows,
                          const NamedMetrics& metrics) const;

  ModelOptions options_;
  nn::CellPtr train_network_;
  std::shared_ptr<nn::TrainOneStepCell> one_step_;  // train_network_, when the model made it
  nn::CellPtr eval_network_;
  std::uint64_t passes_ = 0;  // over training data
  std::uint64_t steps_ = 0;   // of this process
};

}  // namespace muster::train
