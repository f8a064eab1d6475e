#include "muster/data/buffer_pool.h"

#include <mutex>
#include <vector>

namespace muster::data {

// What lies ready to be used again; the last one put back is the first one out, since it is warm in the
// cache.
struct BufferPool::Shelf {
  static constexpr std::size_t buffers_max = 32;  // more than these are given back to the allocator

  std::mutex mutex;
  std::vector<std::shared_ptr<Buffer>> free;

  std::shared_ptr<Buffer> take(std::size_t size_bytes) {
    const std::lock_guard lock(mutex);
    for (auto buffer = free.rbegin(); buffer != free.rend(); ++buffer) {
      if ((*buffer)->size_bytes() != size_bytes) continue;
      auto taken = std::move(*buffer);
      free.erase(std::next(buffer).base());
      return taken;
    }
    return nullptr;
  }

  void put_back(std::shared_ptr<Buffer> buffer) {
    const std::lock_guard lock(mutex);
    if (free.size() < buffers_max) free.push_back(std::move(buffer));
  }
};

BufferPool::BufferPool() : shelf_(std::make_shared<Shelf>()) {}

Tensor BufferPool::make(DType dtype, Shape shape) const {
  const std::size_t size = static_cast<std::size_t>(shape.elements()) * size_bytes(dtype);
  auto memory = shelf_->take(size);
  if (!memory) memory = Buffer::allocate(size);
  std::byte* data = memory->data();
  // The tensor's buffer lends the memory and puts it back: the lock in put_back orders the last use of the
  // old tensor before the first of the new one.
  auto lent = Buffer::borrow(data, size, [shelf = shelf_, memory = std::move(memory)]() mutable {
    shelf->put_back(std::move(memory));
  });
  return Tensor(dtype, std::move(shape), std::move(lent));
}

}  // namespace muster::data
