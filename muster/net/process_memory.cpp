#include <sys/uio.h>

#include "muster/net/shared_memory.h"

namespace muster::net {

bool read_of_process(std::int32_t id, std::uint64_t address, std::span<std::byte> into) {
  while (!into.empty()) {
    iovec here{into.data(), into.size()};
    iovec there{reinterpret_cast<void*>(address), into.size()};  // NOLINT(performance-no-int-to-ptr)
    const ssize_t got = ::process_vm_readv(id, &here, 1, &there, 1, 0);
    if (got <= 0) return false;
    address += static_cast<std::uint64_t>(got);
    into = into.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace muster::net
