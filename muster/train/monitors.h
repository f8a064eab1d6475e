// Callbacks that print how the training goes.
#pragma once

#include "muster/base/base.h"
#include "muster/train/callback.h"

namespace muster::train {

// Prints "epoch: 1 step: 1, loss is 1.4686084" every `per_print_times` steps, and after fit's evaluations
// their results. Ends the training with an error at a loss that is NaN or infinite.
class LossMonitor : public Callback {
 public:
  explicit LossMonitor(std::int64_t per_print_times = 1) : per_print_times_(per_print_times) {}
  Result<> step_end(CallbackContext& context) override;
  Result<> on_train_epoch_end(CallbackContext& context) override;
  Result<> on_eval_step_end(CallbackContext&) override { return {}; }
  Result<State> state() override;
  bool shares_state() const override { return true; }
  bool shows_results() const override { return per_print_times_ != 0; }
  Result<> load_state(const State& state) override;

 private:
  std::int64_t per_print_times_;
  std::int64_t last_printed_ = 0;
};

struct TimeMonitorOptions {
  std::int64_t data_size = 0;  // the number of steps to divide by; 0: those of the epoch
  bool data_time = false;      // always says what of a step of a training passed before it
};

// Prints "Train epoch time: 20896.986 ms, per step time: 83.588 ms" after each epoch, "Eval epoch time: …"
// after each evaluation. Where a tenth or more of a training passed between steps, in the dataset or in other
// callbacks, ", of which 60.120 ms between steps" stands behind it; with data_time " (data time: 60.120 ms)"
// does, whatever it is.
class TimeMonitor : public Callback {
 public:
  explicit TimeMonitor(TimeMonitorOptions options = {}, const Clock& clock = real_clock())
      : options_(options), clock_(clock) {}
  Result<> epoch_begin(CallbackContext& context) override;
  Result<> epoch_end(CallbackContext& context) override;
  Result<> on_train_step_begin(CallbackContext& context) override;
  Result<> on_train_step_end(CallbackContext& context) override;
  // The time that the epoch has taken so far.
  Result<State> state() override;
  bool shares_state() const override { return true; }
  Result<> load_state(const State& state) override;

 private:
  TimeMonitorOptions options_;
  const Clock& clock_;
  TimePoint train_begin_{};
  TimePoint eval_begin_{};  // fit evaluates within an epoch
  TimePoint idle_since_{};  // the begin of the training epoch, or its last step
  Duration idle_{};
};

struct ProgressBarOptions {
  int width = 30;  // characters of the bar
  // Whether the line is drawn over and over, as a terminal can; otherwise one line after each epoch. Not
  // said: whether standard error is a terminal.
  std::optional<bool> live = {};
};

// One line on standard error: "epoch 1/10 [=====>    ] 12/50, 12.1 steps/s, ETA 0:40, loss 1.4687". Behind it
// are the values of fit's last evaluation; while one runs, the line shows how far that is. Rank 0 only.
class ProgressBar : public Callback {
 public:
  explicit ProgressBar(ProgressBarOptions options = {}, const Clock& clock = real_clock());
  Result<> on_train_begin(CallbackContext& context) override;
  Result<> on_train_epoch_begin(CallbackContext& context) override;
  Result<> on_train_step_end(CallbackContext& context) override;
  Result<> on_train_epoch_end(CallbackContext& context) override;
  Result<> on_eval_step_end(CallbackContext& context) override;
  Result<> on_eval_end(CallbackContext& context) override;
  Result<State> state() override;
  bool shares_state() const override { return true; }
  bool shows_results() const override { return true; }
  Result<> load_state(const State& state) override;
  // What is shown now, without the control characters.
  std::string line(const CallbackContext& context) const;

 private:
  void draw(const CallbackContext& context, bool last);
  void show(const std::string& text, bool last);

  ProgressBarOptions options_;
  const Clock& clock_;
  bool live_;
  TimePoint epoch_begin_{};
  TimePoint drawn_{};
  MetricValues results_;  // of the last evaluation
};

}  // namespace muster::train
