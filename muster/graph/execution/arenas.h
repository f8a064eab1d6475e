// Private to graph: memory for the values of runs, which plans that run in turn share.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "muster/tensor/tensor.h"

namespace muster::graph {

// A function has a plan for each length of its inputs, and each plan needs memory while it runs alone: as
// much as the largest, and not as all of them together. A run inside a run, or beside it, gets memory of its
// own. Threads: any.
class Arenas {
 public:
  // At least `size_bytes`, the caller's until the handle is gone. Nothing in it lasts from run to run.
  std::shared_ptr<Buffer> take(std::size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    for (auto& buffer : buffers_) {
      // This is the only handle. Copying it, or letting it go, synchronises with the last drop.
      if (buffer.use_count() != 1) continue;
      if (buffer->size_bytes() < size_bytes) {
        buffer.reset();  // before there is another
        buffer = Buffer::allocate(size_bytes);
      }
      return buffer;
    }
    return buffers_.emplace_back(Buffer::allocate(size_bytes));
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
};

}  // namespace muster::graph
