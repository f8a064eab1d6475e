#include "muster/collective/neighbour_memory.h"

#include <unistd.h>

namespace muster::collective {

NeighbourMemory::NeighbourMemory(LocalGroup& local)
    : local_(local), mark_(entropy()), known_(local.size(), false) {
  local_.introduce({.id = ::getpid(), .address = reinterpret_cast<std::uint64_t>(&mark_), .mark = mark_});
}

bool NeighbourMemory::read(std::uint32_t local_rank, std::uint64_t address, std::span<std::byte> into) {
  return is_known(local_rank) && net::read_of_process(local_.process_of(local_rank).id, address, into);
}

// Ranks of two containers may share memory and not the numbers of their processes.
bool NeighbourMemory::is_known(std::uint32_t local_rank) {
  if (known_[local_rank]) return true;
  const LocalGroup::Process& process = local_.process_of(local_rank);
  std::uint64_t mark = 0;
  const bool found =
      net::read_of_process(process.id, process.address, std::as_writable_bytes(std::span(&mark, 1)));
  return known_[local_rank] = found && mark == process.mark;
}

}  // namespace muster::collective
