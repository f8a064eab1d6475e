// Private to train: one call of Model::train.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/train/batches.h"
#include "muster/train/model.h"
#include "muster/train/recovering_call.h"
#include "muster/train/recovery_point.h"

namespace muster::train {

// In a job that recovers it is made of attempts: each goes on from the newest point that all workers hold,
// until one comes to the end.
class Model::Training {
 public:
  Training(Model& model, const TrainOptions& options);
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;
  ~Training() { wait_for_files(); }

  Result<> run();

 private:
  // ---- One attempt ----
  Result<> prepare(const RecoveringCall::Start& start);
  Result<> check_options();
  Result<> count_steps();
  Result<> check_callbacks() const;
  Result<> run_epochs();
  Result<> run_epoch(std::int64_t number, bool in_middle);
  Result<> run_steps();
  Result<> run_group();
  Result<> begin_step();
  Result<std::optional<data::Item>> read_batch();
  Result<data::Item> read_batch_of_any_pass();
  Result<> step(std::span<const Tensor> batch);
  Result<> validate();
  Result<> call(CallbackMethod method) { return call_each(options_.callbacks, method, *context_); }
  bool groups_steps() const { return options_.dataset_sink_mode && options_.sink_size > 0; }

  // ---- Going on after a loss (model_recovery.cpp) ----
  Result<> run_recovering(Recovery& recovery);
  Result<> share();
  Result<> attempt();
  Result<> begin();
  Result<> finish();
  Result<> take_end();
  Result<> go_back_to(const RecoveringCall::Start& start);
  Result<> go_on_from_memory();
  Result<> ready_for_loss();
  Result<> save_point_if_due();
  void hand_out(const checkpoint::Point& point);
  void wait_for_files();
  // Where the training is between two steps, as numbers.
  struct Place {
    std::int64_t epoch = 0;
    std::int64_t step = 0;
    std::int64_t epochs_done = 0;
    bool in_epoch = false;
    bool stop = false;
    std::int64_t step_number = 0;
    std::uint64_t model_steps = 0;
    std::uint64_t model_passes = 0;
    DataPosition data = {};
    std::int64_t group_steps = -1;  // of a group that is under way; -1: of none
    std::uint64_t runs = 0;
  };
  Place place() const;
  Result<checkpoint::Point> point_of(const checkpoint::PointId& id);
  Result<checkpoint::Point> point_at(const checkpoint::PointId& id, const Place& place);
  Result<checkpoint::Point> point_in_memory();
  bool makes_steps_together() const;
  void note_step();
  void warn_of_callbacks() const;
  TrainingParts parts() const;
  Result<> take_position(const TrainingPosition& position);
  void take_place(const Place& place, std::vector<Tensor> outputs);

  Model& model_;
  const TrainOptions& options_;
  std::shared_ptr<CallbackContext> context_;
  std::vector<graph::ParameterPtr> parameters_;
  std::optional<Batches> batches_;
  std::int64_t step_number_ = 0;  // of the next step, from 0
  std::int64_t epochs_done_ = 0;
  bool in_epoch_ = false;          // goes on in the middle of one
  bool steps_are_made_ = false;    // and behind its last step
  std::int64_t group_steps_ = -1;  // steps of the group under way that are made; -1: none is
  Place before_;                   // the step that is being made
  bool step_has_begun_ = false;    // its callbacks were called
  bool commits_ = false;           // all workers make each step together, and say when they have all of it
  std::int64_t point_step_ = 0;    // when the last point was saved
  std::unique_ptr<RecoveringCall> call_;  // in a job that recovers
  bool has_begun_ = false;                // on_train_begin was called
  bool is_fresh_ = true;                  // no step was made
  bool points_are_requested_ = false;
  std::future<void> files_;  // what callbacks write of the last point
};

}  // namespace muster::train
