// Callbacks that change how the training goes on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/train/callback.h"

namespace muster::train {

// Which way a monitored number gets better.
enum class MonitorMode { automatic, min, max };
// "auto", "min", "max"; an error lists the choices.
Result<MonitorMode> monitor_mode_from_string(std::string_view name);

// Follows a number from epoch to epoch.
class Best {
 public:
  Best(std::string monitor, MonitorMode mode, double min_delta);
  // Whether `value` is better than the best so far by more than min_delta; then it is the best.
  bool improves(double value);
  bool is_better(double value, double than) const;
  const std::string& monitor() const { return monitor_; }
  void reset() { best_.reset(); }
  const std::optional<double>& best() const { return best_; }
  void restore(std::optional<double> best) { best_ = best; }

 private:
  std::string monitor_;
  bool greater_is_better_;
  double min_delta_;
  std::optional<double> best_;
};

// The number to look at after an epoch, of a data-parallel job the mean over its workers, which is a
// collective call; nothing after one without an evaluation.
Result<std::optional<double>> monitored_after_epoch(const CallbackContext& context,
                                                    const std::string& monitor);

struct EarlyStoppingOptions {
  // A metric of fit's evaluations, "eval_loss", or "loss" of the last training step.
  std::string monitor = "eval_loss";
  double min_delta = 0;
  std::int64_t patience = 0;  // epochs without improvement that are borne
  bool verbose = false;
  // automatic: names with "acc" get better upwards, others downwards.
  MonitorMode mode = MonitorMode::automatic;
  std::optional<double> baseline = {};  // only what is better than it counts as improvement
  bool restore_best_weights = false;
};

// Ends the training when the number has not got better for `patience` epochs.
class EarlyStopping : public Callback {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options = {});
  Result<> on_train_begin(CallbackContext& context) override;
  Result<> on_train_epoch_end(CallbackContext& context) override;
  Result<> on_train_end(CallbackContext& context) override;
  Result<> on_eval_begin(CallbackContext&) override { return {}; }
  Result<State> state() override;
  Result<> load_state(const State& state) override;

 private:
  void keep_weights(const CallbackContext& context);
  Result<> restore_weights(const CallbackContext& context) const;

  EarlyStoppingOptions options_;
  Best best_;
  std::int64_t waited_ = 0;
  std::int64_t stopped_epoch_ = 0;
  std::vector<checkpoint::Entry> weights_;  // of the best epoch: the parameters that this process has
};

struct ReduceLROnPlateauOptions {
  std::string monitor = "eval_loss";
  double factor = 0.1;  // in [0, 1)
  std::int64_t patience = 10;
  bool verbose = false;
  MonitorMode mode = MonitorMode::automatic;
  double min_delta = 1e-4;
  std::int64_t cooldown = 0;  // epochs to wait after a reduction before counting again
  double min_lr = 0;
};

// Multiplies the learning rate by `factor` when the number has not got better for `patience` epochs.
class ReduceLROnPlateau : public Callback {
 public:
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {});
  Result<> on_train_begin(CallbackContext& context) override;
  Result<> on_train_epoch_end(CallbackContext& context) override;
  Result<State> state() override;
  Result<> load_state(const State& state) override;

 private:
  Result<> reduce(const CallbackContext& context);

  ReduceLROnPlateauOptions options_;
  Best best_;
  std::int64_t waited_ = 0;
  std::int64_t cooling_ = 0;
};

// After each step, the learning rate of the next is function(learning rate, number of the step).
class LearningRateScheduler : public Callback {
 public:
  using Function = std::function<Result<double>(double learning_rate, std::int64_t step)>;
  explicit LearningRateScheduler(Function function) : function_(std::move(function)) {}
  Result<> on_train_step_end(CallbackContext& context) override;

 private:
  Function function_;
};

// Calls the functions that are given.
class LambdaCallback : public Callback {
 public:
  using Function = std::function<Result<>(CallbackContext&)>;
  struct Functions {
    Function on_train_epoch_begin = {}, on_train_epoch_end = {}, on_train_step_begin = {};
    Function on_train_step_end = {}, on_train_begin = {}, on_train_end = {};
    Function on_eval_epoch_begin = {}, on_eval_epoch_end = {}, on_eval_step_begin = {};
    Function on_eval_step_end = {}, on_eval_begin = {}, on_eval_end = {};
  };
  explicit LambdaCallback(Functions functions) : functions_(std::move(functions)) {}

  Result<> on_train_begin(CallbackContext& c) override { return call(functions_.on_train_begin, c); }
  Result<> on_train_epoch_begin(CallbackContext& c) override {
    return call(functions_.on_train_epoch_begin, c);
  }
  Result<> on_train_step_begin(CallbackContext& c) override {
    return call(functions_.on_train_step_begin, c);
  }
  Result<> on_train_step_end(CallbackContext& c) override { return call(functions_.on_train_step_end, c); }
  Result<> on_train_epoch_end(CallbackContext& c) override { return call(functions_.on_train_epoch_end, c); }
  Result<> on_train_end(CallbackContext& c) override { return call(functions_.on_train_end, c); }
  Result<> on_eval_begin(CallbackContext& c) override { return call(functions_.on_eval_begin, c); }
  Result<> on_eval_epoch_begin(CallbackContext& c) override {
    return call(functions_.on_eval_epoch_begin, c);
  }
  Result<> on_eval_step_begin(CallbackContext& c) override { return call(functions_.on_eval_step_begin, c); }
  Result<> on_eval_step_end(CallbackContext& c) override { return call(functions_.on_eval_step_end, c); }
  Result<> on_eval_epoch_end(CallbackContext& c) override { return call(functions_.on_eval_epoch_end, c); }
  Result<> on_eval_end(CallbackContext& c) override { return call(functions_.on_eval_end, c); }

 private:
  static Result<> call(const Function& function, CallbackContext& context) {
    return function ? function(context) : Result<>{};
  }

  Functions functions_;
};

}  // namespace muster::train
