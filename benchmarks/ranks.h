// Processes of this host as the ranks of a group.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "muster/collective/collective.h"

namespace muster::benchmarks {

// Says what went wrong and ends this process.
[[noreturn]] void die(const Error& error);

// How the ranks reach each other: sharing memory, over TCP, TLS, or UCX.
enum class Transport { automatic, tcp, tls, ucx };
// "auto", "tcp", "tls", "ucx".
Transport transport_of(const std::string& name);

struct Crew {
  std::uint32_t ranks = 2;
  Transport transport = Transport::automatic;
  std::uint32_t ranks_of_host = 0;  // as if so many shared a host; 0: all of them, or each its own over TCP
};

// Forks the ranks' processes, each of which calls `work` with its communicator. Whether all of them ended
// well. Call it before this process has threads.
bool run_ranks(const Crew& crew, const std::function<void(Communicator&)>& work);

}  // namespace muster::benchmarks
