#include "muster/collective/shared_arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace muster::collective {
namespace {

constexpr std::size_t arena_page_size_bytes = 4096;
constexpr std::size_t room_limit_bytes = std::size_t{1} << 46;
constexpr std::size_t window_limit_bytes = std::size_t{1} << 40;
// Mapping costs nothing before it is touched, and each step ahead saves mapping again.
constexpr std::size_t mapped_least_bytes = std::size_t{64} << 20;

std::size_t whole_pages(std::size_t size_bytes) {
  return (std::max<std::size_t>(size_bytes, 1) + arena_page_size_bytes - 1) / arena_page_size_bytes *
         arena_page_size_bytes;
}

}  // namespace

std::size_t arena_bytes(std::size_t local_ranks) {
  return std::min(room_limit_bytes, local_ranks * window_limit_bytes);
}

SharedArena::SharedArena(std::shared_ptr<const net::Segment> segment, std::uint32_t local_rank,
                         std::uint32_t local_ranks)
    : segment_(std::move(segment)),
      local_rank_(local_rank),
      window_bytes_(segment_->room_bytes() / local_ranks / arena_page_size_bytes * arena_page_size_bytes),
      windows_(local_ranks) {}

// The first gap that is large enough: the window stays short, and so do the mappings of it elsewhere.
Result<std::pair<const Offset, net::Mapping>*> SharedArena::place(std::size_t size_bytes) {
  const std::size_t wanted = size_bytes <= window_bytes_ ? whole_pages(size_bytes) : size_bytes;
  const std::lock_guard lock(mutex_);
  Offset offset = window(local_rank_);
  for (const auto& [begin, piece] : pieces_) {
    if (begin - offset >= wanted) break;
    offset = begin + piece.size_bytes();
  }
  if (wanted > window(local_rank_) + window_bytes_ - offset)
    return fail(
        Code::invalid_argument,
        fmt::format(
            "{} bytes of shared memory do not fit into the {} that a rank has room for; the limit is the "
            "size of files (ulimit -f)",
            size_bytes, window_bytes_));
  const net::Extent extent{.offset_bytes = offset, .size_bytes = wanted};
  MUSTER_TRY_VOID(segment_->reserve(extent));
  auto mapped = segment_->map(extent);
  if (!mapped) {
    segment_->release(extent);
    return fail(std::move(mapped).error());
  }
  return &*pieces_.emplace(offset, *std::move(mapped)).first;
}

Result<std::shared_ptr<std::byte>> SharedArena::take(std::size_t size_bytes) {
  MUSTER_TRY(const auto* const piece, place(size_bytes));
  return std::shared_ptr<std::byte>(piece->second.data(), [arena = shared_from_this(), offset = piece->first](
                                                              std::byte*) { arena->give_back(offset); });
}

Result<std::byte*> SharedArena::take_for_good(std::size_t size_bytes) {
  MUSTER_TRY(const auto* const piece, place(size_bytes));
  return piece->second.data();
}

// A forked child has copies of the handles, but the memory is its parent's.
void SharedArena::give_back(Offset offset) {
  if (fork_count_ != net::fork_count()) return;
  const std::lock_guard lock(mutex_);
  const auto piece = pieces_.find(offset);
  segment_->release({.offset_bytes = offset, .size_bytes = piece->second.size_bytes()});
  pieces_.erase(piece);
}

Offset SharedArena::offset_of(const std::byte* data, std::size_t size_bytes) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [begin, piece] : pieces_) {
    if (data < piece.data() || data >= piece.data() + piece.size_bytes()) continue;
    const auto inside = static_cast<std::size_t>(data - piece.data());
    return size_bytes <= piece.size_bytes() - inside ? begin + inside : nowhere;
  }
  return nowhere;
}

Result<> SharedArena::check_inside(std::uint32_t local_rank, Offset offset, std::size_t size_bytes) const {
  const Offset begin = window(local_rank);
  if (offset >= begin && offset - begin <= window_bytes_ && size_bytes <= window_bytes_ - (offset - begin))
    return {};
  return fail(Code::corrupt,
              fmt::format("local rank {} told of data outside of its shared memory", local_rank));
}

Result<net::Mapping> SharedArena::map_of(std::uint32_t local_rank, Offset offset,
                                         std::size_t size_bytes) const {
  MUSTER_TRY_VOID(check_inside(local_rank, offset, size_bytes));
  return segment_->map({.offset_bytes = offset, .size_bytes = size_bytes});
}

Result<> SharedArena::reach(std::uint32_t local_rank, Offset offset, std::size_t size_bytes) {
  MUSTER_TRY_VOID(check_inside(local_rank, offset, size_bytes));
  const Offset begin = window(local_rank);
  net::Mapping& mapped = windows_[local_rank];
  const std::size_t end = offset - begin + size_bytes;
  if (mapped.size_bytes() < end) {
    const std::size_t ahead = std::max(mapped_least_bytes, std::bit_ceil(end));
    MUSTER_TRY(mapped, segment_->map({.offset_bytes = begin, .size_bytes = std::min(ahead, window_bytes_)}));
  }
  return {};
}

}  // namespace muster::collective
