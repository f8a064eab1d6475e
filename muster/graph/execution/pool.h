// Private to graph: buffers for outputs, used again when their last handle is gone.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "muster/graph/execution/group_memory.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {

// Threads: take() on one; handles may be dropped on any.
class BufferPool {
 public:
  explicit BufferPool(std::size_t size_bytes) : size_bytes_(size_bytes) {}

  // With memory of `communicator`; null: ordinary memory.
  std::shared_ptr<Buffer> take(Communicator* communicator) {
    if (communicator != owner_) buffers_.clear();
    owner_ = communicator;
    for (const auto& buffer : buffers_) {
      // Nobody can make a second handle from the only one. Copying it synchronises with the last drop.
      if (buffer.use_count() == 1) return buffer;
    }
    auto made = buffer_of(owner_, size_bytes_);
    if (buffers_.size() < buffers_max) buffers_.push_back(made);
    return made;
  }

 private:
  // Callers that keep every result (a list of losses) must not make each call slower than the last.
  static constexpr std::size_t buffers_max = 8;
  std::size_t size_bytes_;
  Communicator* owner_ = nullptr;  // of the buffers; never called, but in take()
  std::vector<std::shared_ptr<Buffer>> buffers_;
};

}  // namespace muster::graph
