#include "muster/server/row_cache.h"

#include <cstring>
#include <utility>

namespace muster::server {

RowCache::Row RowCache::find(std::uint64_t id, std::uint64_t least) {
  const auto found = places_.find(id);
  if (found == places_.end() || slots_[found->second].applied < least) return {};
  slots_[found->second].is_used = true;
  return {.values = values_.data() + found->second * width_, .applied = slots_[found->second].applied};
}

void RowCache::put(std::uint64_t id, Row row) {
  if (rows_max_ == 0) return;
  const auto known = places_.find(id);
  const bool is_new = known == places_.end();
  const std::uint32_t slot = is_new ? free_slot() : known->second;
  if (is_new) places_.emplace(id, slot);
  slots_[slot] = {.id = id, .applied = row.applied, .is_used = !is_new};
  std::memcpy(values_.data() + slot * width_, row.values, width_ * sizeof(float));
}

// The clock of page replacement: who was used since the hand came by last stays for one more round.
std::uint32_t RowCache::free_slot() {
  if (slots_.size() < rows_max_) {
    slots_.emplace_back();
    values_.resize(slots_.size() * width_);
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  while (std::exchange(slots_[hand_].is_used, false)) hand_ = (hand_ + 1) % slots_.size();
  const std::uint32_t slot = hand_;
  hand_ = (hand_ + 1) % slots_.size();
  places_.erase(slots_[slot].id);
  return slot;
}

void RowCache::clear() {
  places_.clear();
  slots_.clear();
  values_.clear();
  hand_ = 0;
}

}  // namespace muster::server
