#include "muster/train/snapshot_memory.h"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace muster::train {

class SnapshotMemory::Free {
 public:
  std::shared_ptr<Buffer> take(std::size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = buffers_.extract(size_bytes);
    return found.empty() ? Buffer::allocate(size_bytes) : std::move(found.mapped());
  }
  void give_back(std::shared_ptr<Buffer> buffer) {
    const std::lock_guard lock(mutex_);
    const std::size_t size_bytes = buffer->size_bytes();
    buffers_.emplace(size_bytes, std::move(buffer));
  }

 private:
  std::mutex mutex_;
  std::multimap<std::size_t, std::shared_ptr<Buffer>> buffers_;  // by size: a training's tensors keep theirs
};

SnapshotMemory::SnapshotMemory() : free_(std::make_shared<Free>()) {}

Tensor SnapshotMemory::copy(const Tensor& tensor) {
  std::shared_ptr<Buffer> memory = free_->take(tensor.size_bytes());
  std::memcpy(memory->data(), tensor.bytes(), tensor.size_bytes());
  std::byte* const data = memory->data();
  return Tensor(tensor.dtype(), tensor.shape(),
                Buffer::borrow(data, tensor.size_bytes(),
                               [memory = std::move(memory), home = std::weak_ptr(free_)]() mutable {
                                 if (const auto free = home.lock()) free->give_back(std::move(memory));
                               }));
}

}  // namespace muster::train
