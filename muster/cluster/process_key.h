// Process key: the proof that a process is the one that has registered. It is a secret that the process draws
// when it starts and tells the scheduler alone, on each connection. Everything else about a process stands in
// rosters.
#pragma once

#include <array>
#include <cstdint>

#include "muster/cluster/roster.h"
#include "muster/net/net.h"

namespace muster::cluster {

using ProcessSecret = std::array<std::uint64_t, 2>;  // all 0: none

ProcessSecret new_secret();
inline bool is_secret(const ProcessSecret& secret) { return secret != ProcessSecret{}; }

// What the scheduler knows a process by, in its memory and in its recovery log: who reads that can act for
// no process. It binds the secret to what the process says of itself at registration and a certificate may
// have to vouch for, so that no secret opens another's place.
using ProcessKey = net::Digest;

ProcessKey key_of(const ProcessSecret& secret, const Member& claimed);

}  // namespace muster::cluster
