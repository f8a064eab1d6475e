#include "muster/collective/pair_memory.h"

#include <new>

namespace muster::collective {

struct PairMemory::Header {
  alignas(128) SharedReason reason;
};

std::size_t PairMemory::size_bytes(std::size_t local_ranks) {
  return sizeof(Header) + local_ranks * sizeof(Seat);
}

void PairMemory::lay_out() const {
  new (&header()) Header{};
  for (std::uint32_t r = 0; r < local_ranks_; ++r) new (&seat(r)) Seat{};
}

PairMemory::Header& PairMemory::header() const { return *std::launder(reinterpret_cast<Header*>(area_)); }
SharedReason& PairMemory::reason() const { return header().reason; }

Seat& PairMemory::seat(std::uint32_t local_rank) const {
  return *std::launder(reinterpret_cast<Seat*>(area_ + sizeof(Header) + local_rank * sizeof(Seat)));
}

}  // namespace muster::collective
