// Plan of a call: how its data is cut. A pure function of the layout and the call, the same on every rank.
// Cutting never changes a result, since values are combined element by element.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "muster/collective/layout.h"

namespace muster::collective {

struct Sizes {
  std::size_t small_size_bytes = 0;  // up to here a call goes whole to all ranks, in one step
  std::size_t chunk_size_bytes = 0;  // at most this much of a larger one is under way in one step
  // So much of a chunk, at most, one rank of another host has for all ranks of this one; 0 on a single host.
  std::size_t raw_size_bytes = 0;
  std::size_t gathered_size_bytes = 0;  // at most this much of each rank is under way in an all_gather
};
Sizes sizes_of(const Layout& layout);

struct Range {
  std::size_t begin = 0;
  std::size_t size = 0;
};

// A tensor of `size_bytes` in chunks of nearly equal length, whole lines of 64 bytes but for the last.
class Chunks {
 public:
  Chunks(std::size_t size_bytes, std::size_t chunk_limit_bytes);
  std::size_t count() const { return count_; }
  Range operator[](std::size_t index) const;

 private:
  std::size_t size_bytes_;
  std::size_t count_;
  std::size_t stride_;
};

// The slices of a chunk that ranks own, relative to the chunk: each combines all raw values of its slice.
// They lie in the order of the ranks' positions, so that those of a host make one piece.
Range slices_of(std::size_t chunk_size_bytes, Places positions, std::uint32_t ranks);

}  // namespace muster::collective
