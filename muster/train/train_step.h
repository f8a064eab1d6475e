// One step of a training loop written by hand.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/nn/nn.h"
#include "muster/train/reducer.h"

namespace muster::train {

struct TrainStepOptions {
  // The gradients, averaged over all workers, are made shorter where all together are longer than this
  // (nn::clip_by_global_norm). Not of a network that is divided over workers.
  std::optional<double> clip_norm = {};
};

// Loss, gradients, their mean over all workers, and the optimizer's update:
//
//   train::TrainStep step(network, loss_fn, optimizer);
//   for (const data::Item& batch : train::batches(dataset, epoch)) {
//     const Tensor loss = step(batch);
//
// Every worker makes the same steps. The first one fails where workers hold different parameters. Errors are
// thrown as Exceptions. Network, loss function and optimizers are borrowed. Main thread only.
class TrainStep {
 public:
  // Gives the loss of a batch.
  using Forward = std::function<nn::Value(std::span<const nn::Value>)>;

  TrainStep(const Forward& forward, nn::Optimizer& optimizer, TrainStepOptions options = {})
      : TrainStep(forward, std::vector<nn::Optimizer*>{&optimizer}, options) {}
  // Several optimizers, which update one after the other, each its own parameters.
  TrainStep(const Forward& forward, std::vector<nn::Optimizer*> optimizers, TrainStepOptions options = {});
  // The loss is loss_fn(network(all but the last), the last): data and label.
  TrainStep(nn::Cell& network, nn::Cell& loss_fn, nn::Optimizer& optimizer, TrainStepOptions options = {});

  // The loss of this worker's batch, before the update.
  Tensor operator()(std::span<const Tensor> batch);

 private:
  Result<std::vector<Tensor>> clipped(std::vector<Tensor> gradients, const graph::RunContext& context);

  std::vector<nn::Optimizer*> optimizers_;
  std::shared_ptr<graph::Function> loss_and_gradients_;
  std::shared_ptr<graph::Function> clip_;  // null: they stay as they are
  DistributedReducer reducer_;
};

}  // namespace muster::train
