// Cells around a network that make a loss, and a training step, of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "muster/nn/cell.h"
#include "muster/nn/optimizer.h"

namespace muster::nn {

// (data, label) to loss_fn(backbone(data), label), with `add_cast_fp32` of both in float32. The names of
// parameters stay those of the backbone.
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

// Each gradient reduced over all workers. Dtypes travel apart.
Values reduce_gradients(std::span<const Value> gradients, Reduction reduction, const Buckets& buckets);

struct TrainOneStepOptions {
  double sens = 1.0;  // gradients are of loss * sens; not 0
  bool return_grad = false;
  // How gradients of all workers become one; absent: each keeps its own.
  std::optional<Reduction> reduction = {};
  Buckets buckets = {};
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

 private:
  CellPtr network_;
  std::shared_ptr<Optimizer> optimizer_;
  TrainOneStepOptions options_;
};

}  // namespace muster::nn
