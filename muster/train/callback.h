// Callbacks: code of others at the steps of a training or an evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/data/data.h"
#include "muster/nn/nn.h"
#include "muster/train/metric.h"
#include "muster/train/state.h"

namespace muster::train {

class Callback;
using CallbackPtr = std::shared_ptr<Callback>;

// Where the training is, and with what. One object for a whole train, fit or eval; callbacks may keep it that
// long.
class CallbackContext {
 public:
  enum class Mode { train, eval };

  Mode mode = Mode::train;
  std::int64_t cur_epoch_num = 0;  // from 1
  std::int64_t cur_step_num = 0;   // from 1, over all epochs; in an evaluation, of this evaluation
  std::int64_t batch_num = 0;      // steps of one epoch
  std::int64_t epoch_num = 0;      // epochs to train
  bool dataset_sink_mode = false;
  // Of the last step: the loss and what else the network gives; in an evaluation loss, outputs and labels.
  std::vector<Tensor> net_outputs;
  std::vector<Tensor> batch;                   // of this step, for callbacks around it; else empty
  std::vector<graph::TensorType> batch_types;  // of the first step's batch
  bool evaluates = false;                      // fit evaluates after some of the epochs
  MetricValues eval_results;                   // of fit's evaluation after this epoch
  MetricValues metrics;                        // of the evaluation that ends now, behind its last batch

  nn::CellPtr network;
  nn::CellPtr train_network;  // network, loss, gradient and update in one; null in an evaluation
  nn::CellPtr eval_network;   // null while training
  nn::CellPtr loss_fn;
  std::shared_ptr<nn::Optimizer> optimizer;
  std::vector<CallbackPtr> list_callback;

  // The step within the epoch, from 1.
  std::int64_t step_in_epoch() const {
    return batch_num > 0 ? (cur_step_num - 1) % batch_num + 1 : cur_step_num;
  }
  // Ends the training after this step or epoch.
  void request_stop() { stop_requested_ = true; }
  bool stop_requested() const { return stop_requested_; }
  // Whether the job goes on after losing processes. Then a recovery point is saved after the callbacks of
  // this step, if one of them asks for it; it goes without asking where the call begins and ends.
  bool recovers = false;
  // `use` is given the state of the training once the callbacks of this step are done, and of its tensors the
  // parameters of train_network; where the job recovers, on another thread that the training waits for at its
  // end.
  using PointUse =
      std::function<void(const checkpoint::Point&, std::span<const checkpoint::Entry> parameters)>;
  void request_point(PointUse use = {}) {
    point_requested_ = true;
    if (use) uses_.push_back(std::move(use));
  }

  // For the training itself.
  bool take_point_request() { return std::exchange(point_requested_, false); }
  std::vector<PointUse> take_uses() { return std::exchange(uses_, {}); }
  void restore_stop(bool requested) { stop_requested_ = requested; }

 private:
  bool stop_requested_ = false;
  bool point_requested_ = false;
  std::vector<PointUse> uses_;
};

// Shows callbacks the batch of a step while it lives: no batch is kept longer for it.
class ShownBatch {
 public:
  ShownBatch(CallbackContext& context, std::span<const Tensor> batch) : context_(context) {
    context.batch.assign(batch.begin(), batch.end());
  }
  ShownBatch(const ShownBatch&) = delete;
  ShownBatch& operator=(const ShownBatch&) = delete;
  ~ShownBatch() { context_.batch.clear(); }

 private:
  CallbackContext& context_;
};

// Override what you need. The short names are called in trainings and evaluations, unless their on_train_ or
// on_eval_ form is overridden. An error ends the training and becomes its result.
class Callback {
 public:
  Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  virtual ~Callback() = default;

  // Whether it shows the values of fit's evaluations: else fit prints them.
  virtual bool shows_results() const { return false; }
  // Whether it collects the parameters of all workers in a divided job: then all of them must have it.
  virtual bool gathers() const { return false; }

  // What it has to know again, beside its settings, when the training goes on from a recovery point: taken
  // after the callbacks of a step, given back in this process or in one that takes its place, there after
  // on_train_begin and on_train_epoch_begin.
  virtual Result<State> state() { return State{}; }
  virtual Result<> load_state(const State&) { return {}; }
  // Whether a worker that comes back may go on with what another one's state() says: it is the same on all
  // workers that train together, or does not matter for the training. Otherwise it is this worker's own, and
  // a worker that has lost it goes back to a point that it has.
  virtual bool shares_state() const { return false; }
  virtual Result<> load_state_of_another(const State& state) { return load_state(state); }
  // A training has gone on from a state that was saved behind the step which is number `step` now: it had
  // another number, by which load_state_of_another() counts.
  virtual void note_saved_at(std::int64_t step) { (void)step; }
  // Whether it seems to know something that state() leaves out: its name, for a warning.
  virtual std::optional<std::string> forgets() const { return std::nullopt; }
  // Whether it says when recovery points are saved, at the same steps on all workers.
  virtual bool requests_points() const { return false; }

  // What it holds back is on disk when it returns: asked for behind the last call of a training, however that
  // ends, and before a point of it is given to others. Never needs Python.
  virtual Result<> flush() { return {}; }

  virtual Result<> begin(CallbackContext&) { return {}; }
  virtual Result<> epoch_begin(CallbackContext&) { return {}; }
  virtual Result<> step_begin(CallbackContext&) { return {}; }
  virtual Result<> step_end(CallbackContext&) { return {}; }
  virtual Result<> epoch_end(CallbackContext&) { return {}; }
  virtual Result<> end(CallbackContext&) { return {}; }

  virtual Result<> on_train_begin(CallbackContext& context) { return begin(context); }
  virtual Result<> on_train_epoch_begin(CallbackContext& context) { return epoch_begin(context); }
  virtual Result<> on_train_step_begin(CallbackContext& context) { return step_begin(context); }
  virtual Result<> on_train_step_end(CallbackContext& context) { return step_end(context); }
  virtual Result<> on_train_epoch_end(CallbackContext& context) { return epoch_end(context); }
  virtual Result<> on_train_end(CallbackContext& context) { return end(context); }

  virtual Result<> on_eval_begin(CallbackContext& context) { return begin(context); }
  virtual Result<> on_eval_epoch_begin(CallbackContext& context) { return epoch_begin(context); }
  virtual Result<> on_eval_step_begin(CallbackContext& context) { return step_begin(context); }
  virtual Result<> on_eval_step_end(CallbackContext& context) { return step_end(context); }
  virtual Result<> on_eval_epoch_end(CallbackContext& context) { return epoch_end(context); }
  virtual Result<> on_eval_end(CallbackContext& context) { return end(context); }
};

using CallbackMethod = Result<> (Callback::*)(CallbackContext&);

// Calls `method` of each callback, in order; the first error ends it.
Result<> call_each(std::span<const CallbackPtr> callbacks, CallbackMethod method, CallbackContext& context);

// The loss of the last step: the first of net_outputs, its mean when it is no scalar.
Result<double> loss_of(const CallbackContext& context);

// A metric of fit's last evaluation by its name, or "loss" for the loss of the last step. An error lists what
// there is.
Result<double> monitored(const CallbackContext& context, const std::string& monitor);

}  // namespace muster::train
