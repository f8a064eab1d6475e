// Processes of this host as the ranks of a group.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "muster/collective/collective.h"

namespace muster::benchmarks {

// Says what went wrong and ends this process.
[[noreturn]] void die(const Error& error);

// How the ranks reach each other: sharing memory, over TCP, or over TLS.
enum class Transport { automatic, tcp, tls };
// "auto", "tcp", "tls".
Transport transport_of(const std::string& name);

// Forks `ranks` processes, each of which calls `work` with its communicator. Whether all of them ended well.
// Call it before this process has threads.
bool run_ranks(std::uint32_t ranks, Transport transport,
               const std::function<void(collective::Communicator&)>& work);

}  // namespace muster::benchmarks
