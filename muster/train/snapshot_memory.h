// Memory for copies of tensors that are made again and again: of what comes back, the next copies are made.
//
// Fresh memory costs a copy more than the copying itself, since the kernel clears each page at its first
// touch, in the middle of a training step.
#pragma once

#include <memory>

#include "muster/tensor/tensor.h"

namespace muster::train {

// Copies may outlive it, and be let go by any thread; copy() belongs to one thread.
class SnapshotMemory {
 public:
  SnapshotMemory();
  Tensor copy(const Tensor& tensor);

 private:
  class Free;  // what has come back
  std::shared_ptr<Free> free_;
};

}  // namespace muster::train
