// Reducer of the gradients of a hand-written training loop: summed or averaged over all workers.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/collective.h"
#include "muster/graph/graph.h"
#include "muster/tensor/tensor.h"

namespace muster::train {

// Reduces by a plan of its own, made once for the gradients that come, with the reduction of a Model's step
// (nn::reduce_gradients). All gradients are there at once, so that those of a dtype are one bucket.
class DistributedReducer {
 public:
  // `parameters` are those whose gradients come, in this order. Without `mean`, the context's gradients_mean
  // decides.
  explicit DistributedReducer(std::vector<std::shared_ptr<graph::Parameter>> parameters,
                              std::optional<bool> mean = {});
  ~DistributedReducer();

  // One gradient for each parameter; the answer has the same shapes and new buffers. A collective call: every
  // worker makes it at the same place. The first call of an epoch proves that all workers hold equal
  // parameters, and fails where they do not. In a process without a cluster, in a cluster of one, and over a
  // mesh, whose workers compute one batch together, the gradients come back as they are. In a divided job
  // those that another worker has come back as they are, and the others are reduced over the copies of the
  // network.
  Result<std::vector<Tensor>> reduce(std::span<const Tensor> gradients);
  // The same as a part of the trace in progress, whose plan reduces while other gradients are still computed,
  // in the buckets of the context. Workers are compared before its first run; in a job that recovers the
  // scheduler compares them alone, since a new process makes that run while the others are in later ones.
  Result<graph::Values> trace(std::span<const graph::Value> gradients);

 private:
  struct Compiled;
  template <class Gradient>
  Result<> check_gradients(std::span<const Gradient> gradients) const;
  bool is_reduced(std::size_t index, const Tensor& gradient) const;
  Reduction reduction() const;
  Result<> check_equal_workers(Communicator& group, bool is_divided);
  // What of an earlier epoch is of no use: who shares memory with whom, and who has proved to be equal.
  void forget_other_epochs(std::uint64_t epoch);
  bool is_checked(std::uint64_t epoch) const { return checked_ && epoch_ == epoch; }
  Result<Compiled*> compiled(std::span<const Tensor> gradients);

  std::vector<std::shared_ptr<graph::Parameter>> parameters_;
  std::optional<bool> mean_;
  std::uint64_t epoch_ = 0;  // of what follows
  bool checked_ = false;     // that all workers hold equal parameters
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace muster::train
