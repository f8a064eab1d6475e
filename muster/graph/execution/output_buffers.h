// Private to graph: buffers for outputs, used again when their last handle is gone.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
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
      // This is the only handle, so no thread can copy it. Copying it here synchronises with the last drop.
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

// The output buffers of a plan, and those that the run in progress writes.
class OutputBuffers {
 public:
  explicit OutputBuffers(std::span<const std::size_t> sizes_bytes) : taken_(sizes_bytes.size()) {
    for (const std::size_t size_bytes : sizes_bytes) pools_.emplace_back(size_bytes);
  }

  // For a run: the first `shared` with memory of `communicator`, unless that is null.
  void take(std::size_t shared, Communicator* communicator) {
    for (std::size_t i = 0; i < pools_.size(); ++i)
      taken_[i] = pools_[i].take(i < shared ? communicator : nullptr);
  }
  const std::shared_ptr<Buffer>& operator[](std::size_t index) const { return taken_[index]; }
  void drop() {
    for (auto& buffer : taken_) buffer.reset();
  }

 private:
  std::vector<BufferPool> pools_;
  std::vector<std::shared_ptr<Buffer>> taken_;
};

}  // namespace muster::graph
