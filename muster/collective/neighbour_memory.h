// Memory of the other ranks of this host's own: read where it lies, in one copy, where slots take two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "muster/collective/local_group.h"

namespace muster::collective {

class NeighbourMemory {
 public:
  // Introduces this process to the others; `local` is borrowed. Before this rank's first sync.
  explicit NeighbourMemory(LocalGroup& local);
  NeighbourMemory(const NeighbourMemory&) = delete;

  // False where that cannot be read from here, or is not that rank's. After the first sync.
  bool read(std::uint32_t local_rank, std::uint64_t address, std::span<std::byte> into);

 private:
  bool is_known(std::uint32_t local_rank);

  LocalGroup& local_;
  const std::uint64_t mark_;  // that others look for here: a process id alone may be another process's
  std::vector<bool> known_;   // by local rank: that its mark was found
};

}  // namespace muster::collective
