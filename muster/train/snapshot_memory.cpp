#include "muster/train/snapshot_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>

namespace muster::train {
namespace {

// Of x86-64 and aarch64: the disk is given two megabytes at once instead of 512 pages.
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

std::size_t rounded_up(std::size_t size_bytes) {
  return std::max<std::size_t>(1, (size_bytes + huge_page_bytes - 1) / huge_page_bytes) * huge_page_bytes;
}

std::shared_ptr<Buffer> allocate(std::size_t size_bytes) {
  constexpr std::align_val_t alignment{huge_page_bytes};
  auto* data = static_cast<std::byte*>(::operator new(size_bytes, alignment));
  ::madvise(data, size_bytes, MADV_HUGEPAGE);  // where it is refused, pages are small
  return Buffer::borrow(data, size_bytes, [data] { ::operator delete(data, alignment); });
}

// Greater elements first: the order of safetensors::plan.
std::vector<std::size_t> order_in_file(std::span<const graph::TensorType> types) {
  std::vector<std::size_t> order(types.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_bytes(types[a].dtype) > size_bytes(types[b].dtype);
  });
  return order;
}

}  // namespace

class SnapshotMemory::Free {
 public:
  // The smallest that is large enough; those that are too small for a training will not be asked for again.
  std::shared_ptr<Buffer> take(std::size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = buffers_.lower_bound(size_bytes);
    if (found != buffers_.end()) return std::move(buffers_.extract(found).mapped());
    buffers_.clear();
    return allocate(size_bytes);
  }
  void give_back(std::shared_ptr<Buffer> buffer) {
    const std::lock_guard lock(mutex_);
    const std::size_t size_bytes = buffer->size_bytes();
    buffers_.emplace(size_bytes, std::move(buffer));
  }

 private:
  std::mutex mutex_;
  std::multimap<std::size_t, std::shared_ptr<Buffer>> buffers_;  // by size
};

SnapshotMemory::SnapshotMemory() : free_(std::make_shared<Free>()) {}

std::vector<Tensor> SnapshotMemory::tensors(std::span<const graph::TensorType> types) {
  std::size_t size_bytes = 0;
  for (const graph::TensorType& type : types) size_bytes += type.size_bytes();
  std::shared_ptr<Buffer> memory = free_->take(rounded_up(size_bytes));
  std::byte* const data = memory->data();
  const auto lent =
      Buffer::borrow(data, size_bytes, [memory = std::move(memory), home = std::weak_ptr(free_)]() mutable {
        if (const auto free = home.lock()) free->give_back(std::move(memory));
      });
  std::vector<Tensor> made(types.size());
  std::size_t at = 0;
  for (const std::size_t index : order_in_file(types)) {
    made[index] = Tensor(types[index].dtype, types[index].shape, lent, at);
    at += types[index].size_bytes();
  }
  return made;
}

}  // namespace muster::train
