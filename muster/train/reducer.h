// Gradients of a hand-written training loop, summed or averaged over all workers.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/collective.h"
#include "muster/graph/graph.h"
#include "muster/tensor/tensor.h"

namespace muster::train {

class Session;

class DistributedReducer {
 public:
  // `parameters` are those whose gradients come, in this order. Without `mean`, the context's gradients_mean
  // decides.
  explicit DistributedReducer(std::vector<std::shared_ptr<graph::Parameter>> parameters,
                              std::optional<bool> mean = {});

  // One gradient for each parameter; the answer has the same shapes and new buffers. A collective call: every
  // worker makes it at the same place. The first call of an epoch proves that all workers hold equal
  // parameters, and fails where they do not. In a process without a cluster, or a cluster of one, the
  // gradients come back as they are. In a divided job those that another worker has come back as they are,
  // and the others are reduced over the copies of the network.
  Result<std::vector<Tensor>> reduce(std::span<const Tensor> gradients);

 private:
  Result<> check_equal_parameters(collective::Communicator& group);
  void forget_other_epochs(const Session& session);
  // Makes memory in which the group reduces at least cost.
  using Memory = std::function<std::shared_ptr<Buffer>(std::size_t size_bytes)>;
  Result<> reduce_some(std::span<const Tensor> gradients, std::span<Tensor> reduced,
                       collective::Communicator& group, const Memory& memory);
  Result<> check_gradients(std::span<const Tensor> gradients) const;
  std::shared_ptr<Buffer> output_buffer(const Memory& memory, std::size_t size_bytes);

  std::vector<std::shared_ptr<graph::Parameter>> parameters_;
  std::optional<bool> mean_;
  std::uint64_t steps_ = 0;
  std::uint64_t epoch_ = 0;         // of what follows
  bool checked_ = false;            // that all workers hold equal parameters
  std::shared_ptr<Buffer> packed_;  // where gradients that lie apart are put side by side
  // The last answers' memory, taken again once nobody holds it: a loop holds one answer while the next is
  // made.
  std::array<std::shared_ptr<Buffer>, 2> outputs_;
};

}  // namespace muster::train
