// Settings resolved on this host: addresses, folders, identities. Everything here asks the system.
#pragma once

#include <string>
#include <vector>

#include "muster/cluster/messages.h"
#include "muster/cluster/node_process.h"

namespace muster::cluster {

// The addresses that MS_SCHED_HOST means, never none.
Result<std::vector<std::string>> resolve_scheduler(const Settings& settings, const Interrupted& interrupted,
                                                   const Clock& clock);

// Where a scheduler listens here, never nowhere: at MUSTER_BIND, else at those addresses of MS_SCHED_HOST
// that this host has.
Result<std::vector<std::string>> listening_ips(const Settings& settings, const Interrupted& interrupted,
                                               const Clock& clock);

// What a process of these settings registers as; the wait for the name of the scheduler is told by `clock`.
Result<Registration> registration_here(const Settings& settings, const Interrupted& interrupted,
                                       const Clock& clock);

// What to say of a scheduler that listens there and identifies no peer by a certificate or a token; empty:
// nothing.
std::string warn_of_open_network(const std::vector<std::string>& ips);

// Makes MS_RECOVERY_PATH when it is set and absent. Where it cannot be written at this moment only a
// scheduler fails: a worker's part of it others can serve.
Result<> prepare_recovery_path(const Settings& settings);

// Of this host, since 1970.
std::uint64_t wall_clock_us();
// The answer to an Echo, to be sent at once.
message::Echo stamped(message::Echo echo);

// As whom the scheduler is met: by what MS_SCHED_HOST says, however it was resolved.
net::Identity scheduler_identity(const Settings& settings);

}  // namespace muster::cluster
