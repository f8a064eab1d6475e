// Shared-memory arena: memory of one rank that the other ranks of its host read and write in place.
//
// The room behind a host's segment is cut into a window for each local rank. A rank takes pieces of its own
// window without a message: where its data lies travels with the calls that use it (LocalGroup::announce),
// and a rank that is told maps it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/net.h"

namespace muster::collective {

// How much room a segment is made with: numbers only, memory comes with the pieces.
std::size_t arena_bytes(std::size_t local_ranks);

// In the segment. The room does not begin at 0.
using Offset = std::uint64_t;
constexpr Offset nowhere = 0;

class SharedArena : public std::enable_shared_from_this<SharedArena> {
 public:
  SharedArena(std::shared_ptr<const net::Segment> segment, std::uint32_t local_rank,
              std::uint32_t local_ranks);

  // Zeroed memory of this rank; it goes back when the last handle is dropped. Any thread.
  Result<std::shared_ptr<std::byte>> take(std::size_t size_bytes);
  // The same, until the last rank of the group has ended: others may read it after this one has left.
  Result<std::byte*> take_for_good(std::size_t size_bytes);
  // Where this rank's `size_bytes` bytes at `data` lie, nowhere if not in pieces that were taken. Any thread.
  Offset offset_of(const std::byte* data, std::size_t size_bytes) const;
  // Makes the bytes that a local rank has told of reachable, then where they are: until the next reach() for
  // that rank. One thread at a time.
  Result<> reach(std::uint32_t local_rank, Offset offset, std::size_t size_bytes);
  // The same bytes, mapped for the caller alone. Any thread.
  Result<net::Mapping> map_of(std::uint32_t local_rank, Offset offset, std::size_t size_bytes) const;
  std::byte* at(std::uint32_t local_rank, Offset offset) const {
    return windows_[local_rank].data() + (offset - window(local_rank));
  }

 private:
  Result<std::pair<const Offset, net::Mapping>*> place(std::size_t size_bytes);
  void give_back(Offset offset);
  Result<> check_inside(std::uint32_t local_rank, Offset offset, std::size_t size_bytes) const;
  Offset window(std::uint32_t local_rank) const {
    return segment_->size_bytes() + local_rank * window_bytes_;
  }

  std::shared_ptr<const net::Segment> segment_;
  std::uint32_t local_rank_;
  std::size_t window_bytes_;
  std::uint32_t fork_count_ = net::fork_count();
  std::vector<net::Mapping> windows_;  // by local rank: the beginning of its window, as far as was needed
  mutable std::mutex mutex_;
  std::map<Offset, net::Mapping> pieces_;  // guarded by mutex_
};

}  // namespace muster::collective
