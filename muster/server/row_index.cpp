#include "muster/server/row_index.h"

#include <utility>

namespace muster::server {
namespace {

constexpr std::size_t hash_entries_first = 1 << 10;

}  // namespace

Result<RangeIndex> RangeIndex::make(RowRange range) {
  MUSTER_TRY(ZeroPages pages, ZeroPages::reserve(range.size() * sizeof(std::uint32_t), "an index of rows"));
  return RangeIndex(range, std::move(pages));
}

Result<ZeroPages> HashIndex::room_for(std::size_t entries) {
  return ZeroPages::reserve(entries * sizeof(Entry), "an index of rows");
}

Result<HashIndex> HashIndex::make() {
  MUSTER_TRY(ZeroPages pages, room_for(hash_entries_first));
  return HashIndex(std::move(pages), hash_entries_first);
}

std::uint32_t HashIndex::find(std::uint64_t id) const {
  for (std::size_t at = begin_of(id);; at = (at + 1) & mask_) {
    const Entry& entry = entries()[at];
    if (entry.place == 0) return no_slot;
    if (entry.id == id) return entry.place - 1;
  }
}

void HashIndex::insert(std::uint64_t id, std::uint32_t slot) {
  MUSTER_CHECK((size_ + 1) * 3 <= (mask_ + 1) * 2, "an index of rows is filled without reserve()");
  std::size_t at = begin_of(id);
  while (entries()[at].place != 0) at = (at + 1) & mask_;
  entries()[at] = {.id = id, .place = slot + 1};
  ++size_;
}

// Moves back what was pushed on by the entry that goes, so that no search ends too early.
void HashIndex::erase(std::uint64_t id) {
  std::size_t hole = begin_of(id);
  while (entries()[hole].place != 0 && entries()[hole].id != id) hole = (hole + 1) & mask_;
  if (entries()[hole].place == 0) return;
  for (std::size_t at = (hole + 1) & mask_; entries()[at].place != 0; at = (at + 1) & mask_) {
    const std::size_t wanted = begin_of(entries()[at].id);
    if (((at - wanted) & mask_) < ((at - hole) & mask_)) continue;  // it lies behind the hole by itself
    entries()[hole] = entries()[at];
    hole = at;
  }
  entries()[hole].place = 0;
  --size_;
}

Result<> HashIndex::reserve(std::size_t count) {
  std::size_t capacity = mask_ + 1;
  while ((size_ + count) * 3 > capacity * 2) capacity *= 2;
  if (capacity == mask_ + 1) return {};
  MUSTER_TRY(ZeroPages pages, room_for(capacity));
  HashIndex larger(std::move(pages), capacity);
  for (std::size_t at = 0; at <= mask_; ++at)
    if (entries()[at].place != 0) larger.insert(entries()[at].id, entries()[at].place - 1);
  *this = std::move(larger);
  return {};
}

}  // namespace muster::server
