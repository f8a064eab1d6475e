// Processes of this host as the ranks of a group.
#pragma once

#include <cstdint>
#include <functional>

#include "muster/collective/collective.h"

namespace muster::benchmarks {

// Says what went wrong and ends this process.
[[noreturn]] void die(const Error& error);

// Forks `ranks` processes, each of which calls `work` with its communicator; over TCP when `tcp`. Whether all
// of them ended well. Call it before this process has threads.
bool run_ranks(std::uint32_t ranks, bool tcp, const std::function<void(collective::Communicator&)>& work);

}  // namespace muster::benchmarks
