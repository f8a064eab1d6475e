// Private: memory that goes round. Batches of one pass have one size; asking the allocator for each again
// would touch fresh pages every time.
#pragma once

#include <memory>

#include "muster/tensor/tensor.h"

namespace muster::data {

// Threads: any. Tensors may outlive the pool.
class BufferPool {
 public:
  BufferPool();
  // Uninitialised elements, in memory of an earlier tensor of the same size that is not used any more.
  Tensor make(DType dtype, Shape shape) const;

 private:
  struct Shelf;
  std::shared_ptr<Shelf> shelf_;
};

}  // namespace muster::data
