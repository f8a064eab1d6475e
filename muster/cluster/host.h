// What settings mean on this host: addresses, folders, identities. Everything here asks the system.
#pragma once

#include <string>
#include <vector>

#include "muster/cluster/node_process.h"

namespace muster::cluster {

// The addresses that MS_SCHED_HOST means, never none.
Result<std::vector<std::string>> resolve_scheduler(const Settings& settings, const Interrupted& interrupted);

// Those of `ips` at which a scheduler can listen here, never none.
Result<std::vector<std::string>> listening_ips(const Settings& settings, const std::vector<std::string>& ips);

// Makes MS_RECOVERY_PATH when it is set and absent.
Result<> prepare_recovery_path(const Settings& settings);

// Of this host, since 1970.
std::uint64_t wall_clock_us();

}  // namespace muster::cluster
