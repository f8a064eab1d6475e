// The two for-loops of a training that is written by hand, over epochs and over items, in a job that
// recovers:
//
//   train::Recoverable steps({.network = net, .optimizer = optimizer, .dataset = batches, .epochs = 10});
//   while (true) {
//     auto step = steps.next();
//     if (!step) return step.error();
//     if (!*step) break;
//     ... gradients of (*step)->item, the reducer, the optimizer ...
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "muster/data/data.h"
#include "muster/nn/nn.h"
#include "muster/train/batches.h"
#include "muster/train/recovering_call.h"
#include "muster/train/recovery_point.h"

namespace muster::train {

struct RecoverableOptions {
  nn::CellPtr network;
  std::shared_ptr<nn::Optimizer> optimizer;
  data::Dataset dataset;
  std::int64_t epochs = 1;
  std::int64_t save_steps = 100;  // between recovery points
  std::uint64_t first_pass = 0;   // of the dataset, which numbers its passes
  Recovery* recovery = nullptr;   // null: as the session says
};

struct LoopStep {
  std::int64_t epoch = 0;  // from 0
  std::int64_t step = 0;   // of the epoch, from 0
  data::Item item;
};

// Where the job does not recover, it is just the loops. Where it does, the loop counts as one call of the
// script: a process that returns comes to the step that the others have gone back to, or passes over a loop
// that is finished, with its end state.
//
// When a process is lost while a body runs, the first collective call of the body (that of the reducer) waits
// until another one has taken its place and makes the same step, with state from one of the others; then it
// ends with the right values, and no step is lost or made twice. Where that cannot be, because a second call
// of the body was under way or something in the state is each worker's own, the step is aborted: collective
// calls return at once, the optimizer does nothing, and the next step is the one that all go back to.
// Parameters of the network and of the optimizer go back with it; what else the body keeps is its own.
//
// Threads: main.
class Recoverable {
 public:
  explicit Recoverable(RecoverableOptions options) : options_(std::move(options)) {}
  Recoverable(const Recoverable&) = delete;
  Recoverable& operator=(const Recoverable&) = delete;
  ~Recoverable();

  // The next step; nothing when all are done. To be called when the body of the one before is done.
  Result<std::optional<LoopStep>> next();
  // The step that runs now is the last. All workers say it at the same step; leaving the loop otherwise
  // leaves a call that is never finished.
  void stop() { stop_ = true; }
  // Whether the step whose body runs is void, and will be made again: what it has got from others since is no
  // number of this training.
  bool is_aborted() const;
  // Passes over the dataset that have begun, from first_pass on.
  std::uint64_t passes() const { return passes_; }

 private:
  Result<> begin();
  Result<> end_step();
  Result<std::optional<LoopStep>> go_on();
  Result<> resume();
  Result<RecoveringCall::Start> agree();
  Result<> take(const RecoveringCall::Start& start);
  Result<std::optional<LoopStep>> advance();
  Result<> finish();
  // Where the loop is between two steps.
  struct Place {
    std::int64_t epoch = 0;
    std::int64_t step = 0;
    std::int64_t steps = 0;
    bool stop = false;
    DataPosition data = {};
    std::uint64_t runs = 0;
  };
  Place place() const;
  Result<checkpoint::Point> point_of(const checkpoint::PointId& id);
  Result<checkpoint::Point> point_at(const checkpoint::PointId& id, const Place& place);
  Result<checkpoint::Point> point_in_memory();
  TrainingParts parts() const;

  RecoverableOptions options_;
  Recovery* recovery_ = nullptr;
  std::unique_ptr<RecoveringCall> call_;
  std::vector<graph::ParameterPtr> parameters_;
  NamedMetrics no_metrics_;
  std::uint64_t passes_ = 0;
  std::optional<Batches> batches_;
  std::int64_t epoch_ = 0;
  std::int64_t step_ = 0;   // of the epoch: of the next
  std::int64_t steps_ = 0;  // of all epochs: done
  std::int64_t saved_ = 0;  // steps when the last point was saved
  bool has_begun_ = false;
  bool in_body_ = false;
  Place before_;                                // the step whose body runs
  std::optional<RecoveringCall::Start> start_;  // where all go on, agreed upon in a body that was void
  bool is_agreed_ = false;                      // all go on from the same point
  bool is_fresh_ = true;
  bool is_over_ = false;
  bool stop_ = false;
};

}  // namespace muster::train
