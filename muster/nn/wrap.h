// Cells around a network: its loss, what is evaluated of it, and a training step.
//
// They hold whole networks, so the names of the parameters stay those of the network itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "muster/nn/cell.h"
#include "muster/nn/optimizer.h"

namespace muster::nn {

// What a loss function takes: what `network` gives for all inputs but the last, and the last, the label; with
// `add_cast_fp32` in float32.
Values outputs_and_label(Cell& network, std::span<const Value> inputs, bool add_cast_fp32 = false);

// (data, label) to loss_fn(backbone(data), label), with `add_cast_fp32` of both in float32.
class WithLossCell : public Cell {
 public:
  WithLossCell(CellPtr backbone, CellPtr loss_fn, bool add_cast_fp32 = false);
  Values construct(std::span<const Value> inputs) override;
  const CellPtr& backbone_network() const { return backbone_; }

 private:
  CellPtr backbone_;
  CellPtr loss_fn_;
  bool add_cast_fp32_;
};

// (data, label) to the loss, what the network gives, and the label, for metrics. Without a loss function the
// loss is left out. With `add_cast_fp32` the last two are cast to it first.
class WithEvalCell : public Cell {
 public:
  WithEvalCell(CellPtr network, CellPtr loss_fn, bool add_cast_fp32 = false);
  Values construct(std::span<const Value> inputs) override;

 private:
  CellPtr network_;
  CellPtr loss_fn_;
  bool add_cast_fp32_;
};

// How the gradients of one step travel: together as they are made, up to `bytes` in one collective call (one
// gradient that is larger goes alone); or cut before `splits`, positions in the order in which the backward
// pass makes the gradients. The bits do not depend on it.
struct Buckets {
  std::int64_t bytes = std::int64_t{4} << 20;
  std::vector<std::int64_t> splits = {};  // ascending, from 1; empty: by `bytes`
  friend bool operator==(const Buckets&, const Buckets&) = default;
};
// An error that names what cannot be.
Result<> check_buckets(const Buckets& buckets);

// In which order the elements of a gradient travel: that in which kernels of the same plan make them, or that
// of tensors, where gradients come and leave as those.
enum class ElementOrder { of_kernels, of_tensors };

// Each gradient reduced over all workers. Dtypes travel apart.
Values reduce_gradients(std::span<const Value> gradients, Reduction reduction, const Buckets& buckets,
                        ElementOrder order = ElementOrder::of_kernels);

// Those of parameters that live on parameter servers stay as they are: they are added up there.
Values reduce_gradients_of(const std::vector<ParameterPtr>& parameters, std::span<const Value> gradients,
                           Reduction reduction, const Buckets& buckets);

struct TrainOneStepOptions {
  double sens = 1.0;  // gradients are of loss * sens; not 0
  bool return_grad = false;
  // How gradients of all workers become one; absent: each keeps its own.
  std::optional<Reduction> reduction = {};
  Buckets buckets = {};
  // Into how many equal parts, one after the other, the samples of a batch are split; the loss is the mean of
  // theirs. The workers of a placed network then work at the same time, each on another part.
  std::int64_t micro_batches = 1;
  // All that the network gives is given, the loss first; the others take no part in the gradient.
  bool has_aux = false;
};

// The inputs of `network`, which gives a loss, to that loss; the parameters of the optimizer take a step, all
// in one graph. With return_grad the (reduced) gradients follow the loss.
class TrainOneStepCell : public Cell {
 public:
  TrainOneStepCell(CellPtr network, std::shared_ptr<Optimizer> optimizer, TrainOneStepOptions options = {});
  Values construct(std::span<const Value> inputs) override;

  const CellPtr& network() const { return network_; }
  const std::shared_ptr<Optimizer>& optimizer() const { return optimizer_; }
  const TrainOneStepOptions& options() const { return options_; }
  void set_reduction(std::optional<Reduction> reduction, const Buckets& buckets);
  void set_micro_batches(std::int64_t count);

 private:
  Values forward(std::span<const Value> inputs);

  CellPtr network_;
  std::shared_ptr<Optimizer> optimizer_;
  TrainOneStepOptions options_;
};

}  // namespace muster::nn
