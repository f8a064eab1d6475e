#include "muster/collective/core_sharing.h"

#include <sched.h>

namespace muster::collective {
namespace {

// Those on which the system may run this thread.
bool read_allowed(cpu_set_t& allowed) {
  CPU_ZERO(&allowed);
  return ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
}

}  // namespace

CoreSharing::CoreSharing(std::size_t ranks_of_host) {
  cpu_set_t allowed;
  is_possible_ = ranks_of_host > 1 && read_allowed(allowed) &&
                 ranks_of_host <= static_cast<std::size_t>(CPU_COUNT(&allowed));
}

std::uint32_t CoreSharing::own_cpu() {
  const int cpu = ::sched_getcpu();
  return cpu < 0 ? 0 : static_cast<std::uint32_t>(cpu);
}

// Where the system refuses, everything stays as it is.
void CoreSharing::move_from(std::uint32_t cpu, const std::function<bool(std::uint32_t)>& has_rank) {
  cpu_set_t allowed;
  if (!read_allowed(allowed)) return;
  for (std::uint32_t other = 0; other < CPU_SETSIZE; ++other) {
    if (other == cpu || !CPU_ISSET(other, &allowed) || has_rank(other)) continue;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(other, &only);
    if (::sched_setaffinity(0, sizeof(only), &only) == 0) ::sched_setaffinity(0, sizeof(allowed), &allowed);
    return;
  }
}

}  // namespace muster::collective
