#include "muster/collective/copies.h"

#include <algorithm>

#include "muster/collective/kernels.h"

namespace muster::collective {
namespace {

constexpr std::size_t chunk_size_bytes = 256 << 10;  // at least

}  // namespace

Copies::Copy Copies::of(std::span<const std::byte> bytes) {
  for (const Made& made : made_)
    if (made.from.data() == bytes.data() && made.from.size() == bytes.size()) return made.copy;
  std::shared_ptr<Chunk> chunk = chunk_for(bytes.size());
  const auto place = std::span(chunk->bytes).subspan(chunk->used, bytes.size());
  chunk->used += bytes.size();
  copy(place.data(), bytes.data(), bytes.size(), Stores::cached);
  Copy copy{.bytes = place, .holder = std::move(chunk)};
  made_.push_back({.from = bytes, .copy = copy});
  return copy;
}

std::shared_ptr<Copies::Chunk> Copies::chunk_for(std::size_t size_bytes) {
  const auto has_room = [&](const std::shared_ptr<Chunk>& chunk) {
    if (chunk.use_count() == 1) chunk->used = 0;
    return chunk->bytes.size() - chunk->used >= size_bytes;
  };
  if (filling_ < chunks_.size() && has_room(chunks_[filling_])) return chunks_[filling_];
  auto found = std::ranges::find_if(chunks_, has_room);
  if (found == chunks_.end()) {
    found = std::ranges::find_if(chunks_, [](const auto& chunk) { return chunk.use_count() == 1; });
    if (found == chunks_.end()) found = chunks_.emplace(chunks_.end());
    *found = std::make_shared<Chunk>();
    (*found)->bytes.resize(std::max(size_bytes, chunk_size_bytes));
  }
  filling_ = static_cast<std::size_t>(found - chunks_.begin());
  return *found;
}

}  // namespace muster::collective
