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
#include "muster/train/callback.h"

namespace muster::train {

class Recovery;

// Whether the body that runs now is void, as below: what it would save is of no step, and it is made again.
bool body_is_void();

struct RecoverableOptions {
  nn::CellPtr network;
  std::shared_ptr<nn::Optimizer> optimizer;  // null: its parameters are among those of the network
  data::Dataset dataset;
  std::int64_t epochs = 1;
  std::int64_t save_steps = 100;  // between recovery points
  std::uint64_t first_pass = 0;   // of the dataset, which numbers its passes
  Recovery* recovery = nullptr;   // null: as the session says
  // What the body keeps from step to step beside them. It is each worker's own, so that all go back to a
  // point when a process is lost: parameters; and what state() of callbacks says, of which no other method is
  // called. One that shares its state must have it when a body begins as all others have it.
  std::vector<graph::ParameterPtr> kept_parameters = {};
  std::vector<CallbackPtr> kept_states = {};
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
// calls return at once, the optimizer does nothing, and the next step is the one that all go back to. A Model
// that works in such a step calls neither callbacks nor metrics any more, and gives NaN for each metric.
// Parameters of the network and of the optimizer go back with it, and what is named as kept. A parameter that
// a body writes and that is neither is an error: it would be lost with a process.
//
// Threads: main.
class Recoverable {
 public:
  explicit Recoverable(RecoverableOptions options);
  Recoverable(const Recoverable&) = delete;
  Recoverable& operator=(const Recoverable&) = delete;
  ~Recoverable();

  // The next step; nothing when all are done. To be called when the body of the one before is done.
  Result<std::optional<LoopStep>> next();
  // The step that runs now is the last. All workers say it at the same step; leaving the loop otherwise
  // leaves a call that is never finished.
  void stop();
  // Whether the step whose body runs is void, and will be made again: what it has got from others since is no
  // number of this training.
  bool is_aborted() const;
  // Passes over the dataset that have begun, from first_pass on.
  std::uint64_t passes() const;

 private:
  class Steps;
  std::unique_ptr<Steps> steps_;
};

}  // namespace muster::train
