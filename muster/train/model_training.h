// Private to train: one call of Model::train.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/train/cell_modes.h"
#include "muster/train/loss_watch.h"
#include "muster/train/model.h"
#include "muster/train/shared_evaluation.h"
#include "muster/train/training_loop.h"

namespace muster::train {

// Between points where no callback asks for them.
inline constexpr std::int64_t steps_between_points = 100;

// Makes the steps of a TrainingLoop, and calls the callbacks around them.
class Model::Training final : public LoopHooks {
 public:
  Training(Model& model, const TrainOptions& options);
  ~Training() override { wait_for_files(); }

  Result<> run();

 private:
  // ---- Before the first step ----
  Result<> open(TrainingLoop& loop) override;
  Result<> check(Batches& batches) override;
  Result<> begin(bool in_epoch) override;
  Result<> check_options();
  Result<> count_steps();
  Result<> check_callbacks() const;
  Result<> agree_on_evaluations();
  bool evaluates_after(std::int64_t epoch) const;
  std::string evaluated_epochs() const;  // "every 2 epochs"

  // ---- Epochs and steps ----
  Result<> make(TrainingLoop::Event event);
  Result<> begin_epoch();
  Result<> end_epoch();
  Result<> end();
  Result<> make_step();
  Result<> make_step_of_group();
  Result<> begin_step();
  Result<> step(std::span<const Tensor> batch);
  NamedMetrics evaluated() const;
  Result<> validate();
  Result<> evaluate(MetricValues& values);
  Result<> merge(const NamedMetrics& metrics);
  Result<> compare(const MetricValues& values);
  Result<> evaluate_with_others(const Collectives::GroupCall& call);
  void print_results() const;
  Result<> call(CallbackMethod method) { return call_each(options_.callbacks, method, *context_); }
  bool groups_steps() const { return options_.dataset_sink_mode && options_.sink_size > 0; }

  // ---- Going on where a person asks (model_resume.cpp) ----
  Result<std::optional<Resumption>> resume() override;
  Result<std::optional<Resumption>> resume_last();
  Result<std::optional<Resumption>> resume_from(const std::string& path);
  bool can_regroup() const;

  // ---- Going on after a loss (model_recovery.cpp) ----
  TrainingParts parts() const override;
  std::vector<nn::CellPtr> cells() const override { return {model_.train_network_}; }
  bool stop_requested() const override { return context_->stop_requested(); }
  void set_stop(bool requested) override { context_->restore_stop(requested); }
  void settle() override { wait_for_files(); }
  void remember() override { before_ = counters(); }
  void describe(TrainingPosition& position, Moment moment) const override;
  Result<> take(const TrainingPosition& position) override;
  void take_back() override;
  std::int64_t commits_behind(std::int64_t epochs) const override;
  void note_resumed() override;
  void note_regrouped() override;
  void note_end(const checkpoint::Point& end) override;
  Result<std::string> result() override { return states_as_text(parts()); }
  // What people and points know beside the place of the loop.
  struct Counters {
    std::int64_t epoch = 0;        // from 1
    std::int64_t step_number = 0;  // of the next step, from 0
    std::uint64_t model_steps = 0;
    std::string modes = {};  // in a job that recovers: callbacks may have switched them
  };
  Counters counters() const;
  void begin_modes();
  void take_counters(const Counters& counters);
  void prepare_to_recover();
  Result<> ready_for_loss();
  Result<> save_point_if_due();
  // In a job that does not recover: to the callbacks that have asked for the state of this moment.
  Result<> hand_out_now(Result<checkpoint::Point> (TrainingLoop::*point)());
  void hand_out(const checkpoint::Point& point);
  std::span<const checkpoint::Entry> parameters_in(const checkpoint::Point& point) const;
  void wait_for_files();
  bool makes_steps_together() const;
  void note_step();
  bool has_statistics() const;
  void warn_of_callbacks() const;

  Model& model_;
  const TrainOptions options_;
  std::shared_ptr<CallbackContext> context_;
  std::vector<graph::ParameterPtr> parameters_;
  TrainingLoop loop_;
  std::int64_t step_number_ = 0;  // of the next step, from 0
  std::optional<CellModes> modes_;
  Counters before_;               // the step that is being made
  bool step_has_begun_ = false;   // its callbacks were called
  bool group_has_begun_ = false;  // likewise, of a group of steps
  bool commits_ = false;          // all workers make each step together, and say when they have all of it
  EvaluationShares shares_;       // of the valid_dataset
  MetricPtr eval_loss_;           // of evaluations
  bool points_are_requested_ = false;
  ModelSteps number_watch_{step_number_};
  std::future<void> files_;  // what callbacks write of the last point
};

}  // namespace muster::train
