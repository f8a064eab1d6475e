#include "muster/collective/pair_memory.h"

#include <new>

namespace muster::collective {

struct PairMemory::Header {
  alignas(128) SharedReason reason;
};

std::size_t PairMemory::size_bytes(std::size_t local_ranks) {
  return sizeof(Header) + local_ranks * sizeof(Seat) +
         local_ranks * local_ranks * sizeof(std::atomic<Offset>);
}

void PairMemory::lay_out() const {
  new (&header()) Header{};
  for (std::uint32_t r = 0; r < local_ranks_; ++r) new (&seat(r)) Seat{};
  for (std::uint32_t from = 0; from < local_ranks_; ++from)
    for (std::uint32_t to = 0; to < local_ranks_; ++to) new (&ring(from, to)) std::atomic<Offset>{nowhere};
}

PairMemory::Header& PairMemory::header() const { return *std::launder(reinterpret_cast<Header*>(area_)); }
SharedReason& PairMemory::reason() const { return header().reason; }

Seat& PairMemory::seat(std::uint32_t local_rank) const {
  return *std::launder(reinterpret_cast<Seat*>(area_ + sizeof(Header) + local_rank * sizeof(Seat)));
}

std::atomic<Offset>& PairMemory::ring(std::uint32_t from, std::uint32_t to) const {
  std::byte* const table = area_ + sizeof(Header) + local_ranks_ * sizeof(Seat);
  return reinterpret_cast<std::atomic<Offset>*>(table)[from * local_ranks_ + to];
}

}  // namespace muster::collective
