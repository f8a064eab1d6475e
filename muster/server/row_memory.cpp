#include "muster/server/row_memory.h"

#include <algorithm>
#include <bit>

namespace muster::server {
namespace {

constexpr std::size_t chunk_size_max_bytes = std::size_t{64} << 20;

}  // namespace

RowMemory::RowMemory(std::size_t row_size_bytes, std::uint64_t rows_max) : row_size_bytes_(row_size_bytes) {
  const std::uint64_t fit = std::max<std::uint64_t>(chunk_size_max_bytes / row_size_bytes, 1);
  const std::uint64_t wanted = std::bit_ceil(std::max<std::uint64_t>(std::min(fit, rows_max), 1));
  shift_ = static_cast<unsigned>(std::countr_zero(wanted <= fit ? wanted : wanted / 2));
  mask_ = (std::uint32_t{1} << shift_) - 1;
}

Result<> RowMemory::reserve(std::size_t count) {
  const std::size_t fresh = count - std::min(count, free_.size());
  while (chunks_.size() << shift_ < made_ + fresh) {
    MUSTER_TRY(ZeroPages chunk, ZeroPages::reserve(chunk_size_bytes(), "rows"));
    chunks_.push_back(std::move(chunk));
  }
  return {};
}

Result<> RowMemory::make(std::size_t slots) {
  MUSTER_CHECK(made_ == 0, "rows of a file come to a table that has rows");
  MUSTER_TRY_VOID(reserve(slots));
  made_ = slots;
  return {};
}

std::uint32_t RowMemory::add() {
  if (free_.empty()) {
    MUSTER_CHECK(made_ < chunks_.size() << shift_, "a row is added without reserve()");
    return static_cast<std::uint32_t>(made_++);
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

}  // namespace muster::server
