#include "muster/collective/copies.h"

#include "muster/collective/kernels.h"

namespace muster::collective {
namespace {

// Hardly anybody ever reads a copy: a large one need not go through the caches.
constexpr std::size_t streamed_from_bytes = 128 << 10;

}  // namespace

Copies::Copy Copies::of(std::span<const std::byte> bytes) {
  for (const Made& made : made_)
    if (made.from.data() == bytes.data() && made.from.size() == bytes.size()) return made.copy;
  std::shared_ptr<Memory> memory = memory_of(bytes.size());
  copy(memory->data(), bytes.data(), bytes.size(),
       bytes.size() < streamed_from_bytes ? Stores::cached : Stores::streaming);
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
