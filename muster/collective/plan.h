// How a call is cut: a pure function of the group and the call, the same on every rank. Cutting never changes
// a result, since values are combined element by element.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/collective/collective.h"

namespace muster::collective {

struct Sizes {
  std::size_t small_size_bytes = 0;  // up to here a call goes whole to everybody, in one step
  std::size_t chunk_size_bytes = 0;  // at most this much of a larger one is under way in one step
};
Sizes sizes_of(const Group& group);

// Ranks with this rank's host key, ascending.
std::vector<std::uint32_t> local_ranks(const Group& group);

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

// The slice of a chunk that a rank owns, relative to the chunk: it combines the others' raw values there.
Range slice_of(std::size_t chunk_size_bytes, std::uint32_t rank, std::uint32_t ranks);

}  // namespace muster::collective
