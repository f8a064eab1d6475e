#include "muster/collective/copies.h"

#include "muster/collective/kernels.h"

namespace muster::collective {
Copies::Copy Copies::of(std::span<const std::byte> bytes) {
  for (const Made& made : made_)
    if (made.from.data() == bytes.data() && made.from.size() == bytes.size()) return made.copy;
  std::shared_ptr<Memory> memory = memory_of(bytes.size());
  copy(memory->data(), bytes.data(), bytes.size(), Stores::cached);
  Copy copy{.bytes = std::span(*memory).first(bytes.size()), .holder = std::move(memory)};
  made_.push_back({.from = bytes, .copy = copy});
  return copy;
}

std::shared_ptr<Copies::Memory> Copies::memory_of(std::size_t size_bytes) {
  std::shared_ptr<Memory>* small = nullptr;
  for (std::shared_ptr<Memory>& each : all_) {
    if (each.use_count() > 1) continue;
    if (each->size() >= size_bytes) return each;
    small = &each;
  }
  if (small == nullptr) small = &all_.emplace_back();
  *small = std::make_shared<Memory>(size_bytes);
  return *small;
}

}  // namespace muster::collective
