// Cells around a user's network: what one step of training or evaluation computes, as one graph.
//
// They hold whole networks, so the names of the parameters stay those of the network itself.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "muster/nn/nn.h"

namespace muster::train {

// construct(data, label) gives the loss, what the network gives, and the label, for metrics. Without a loss
// function the loss is left out. With `add_cast_fp32` the last two are cast to it first.
class WithEvalCell : public nn::Cell {
 public:
  WithEvalCell(nn::CellPtr network, nn::CellPtr loss_fn, bool add_cast_fp32 = false);
  nn::Values construct(std::span<const nn::Value> inputs) override;

 private:
  nn::CellPtr network_;
  nn::CellPtr loss_fn_;
  bool add_cast_fp32_;
};

// construct(inputs) runs a network that gives a loss, derives the gradients of the optimizer's parameters,
// reduces them over all workers and updates: one graph, one plan for each signature; in eager mode op by op.
// Gives what the network gives, the loss first; further outputs take no part in the gradient.
class TrainStepCell : public nn::Cell {
 public:
  TrainStepCell(nn::CellPtr network, std::shared_ptr<nn::Optimizer> optimizer);
  nn::Values construct(std::span<const nn::Value> inputs) override;

  // How gradients are joined over the workers; nothing: each worker goes its own way.
  void set_reduction(std::optional<Reduction> reduction, const nn::Buckets& buckets);
  // Into how many equal parts, one after the other, the samples of a batch are split; the loss is the mean of
  // theirs. The workers of a placed network then work at the same time, each on another part.
  void set_micro_batches(std::int64_t count);

 private:
  nn::Values forward(std::span<const nn::Value> inputs);

  nn::CellPtr network_;
  std::shared_ptr<nn::Optimizer> optimizer_;
  std::shared_ptr<graph::Function> with_gradients_;
  std::optional<Reduction> reduction_;
  nn::Buckets buckets_;
  std::int64_t micro_batches_ = 1;
};

}  // namespace muster::train
