// Checks of the network path to a scheduler, and to other hosts that run the same check at the same time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/launch/doctor.h"
#include "muster/net/net.h"

namespace muster::launch {

struct NetworkOptions {
  net::HostPort scheduler;
  // How long to be there for other doctors, which need not start in the same moment.
  Duration patience = std::chrono::seconds(3);
  std::string own_ip = {};  // where they reach this host; empty: where the way to the scheduler begins
  std::shared_ptr<const net::Security> security = {};  // null: plain
};

// Name, connection, handshake, job, clock, round-trip time, bandwidth, limits, other hosts: each is a line,
// as far as one is reached. Sends at most some megabytes, and changes nothing of a job.
std::vector<Finding> examine_network(const NetworkOptions& options);

}  // namespace muster::launch
