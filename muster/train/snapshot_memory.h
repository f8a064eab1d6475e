// Memory for copies of tensors that are made again and again: of what comes back, the next copies are made.
//
// Fresh memory costs a copy more than the copying itself, since the kernel clears each page at its first
// touch, in the middle of a training step.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/tensor/tensor.h"

namespace muster::train {

// Tensors may outlive it, and be let go by any thread; tensors() belongs to one thread.
class SnapshotMemory {
 public:
  SnapshotMemory();
  // New tensors, uninitialised. They lie in one piece of memory as in the file of a recovery point, so that
  // it can be written from where they are (checkpoint::DirectWriter).
  std::vector<Tensor> tensors(std::span<const graph::TensorType> types);

 private:
  class Free;  // what has come back
  std::shared_ptr<Free> free_;
};

}  // namespace muster::train
