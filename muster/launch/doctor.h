// Checks before a job starts: of this host for what a job needs, and of the network path to a scheduler and
// to other hosts that run the same check at the same time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/net.h"
#include "muster/tensor/tensor.h"

namespace muster::launch {

struct Finding {
  std::string subject = {};
  std::string value = {};
  std::string problem = {};  // empty: all is well; otherwise what is wrong
  std::string fix = {};      // what to do about it, where the problem does not say
  bool is_warning = false;   // a job works in spite of the problem
};

std::vector<Finding> examine_host(const Environment& environment,
                                  const Processor& processor = this_processor());

// What may carry tensors between hosts: the devices that UCX finds here, and how fast TCP and UCX are from
// this host to itself. It takes a second at most.
std::vector<Finding> examine_links();

struct NetworkOptions {
  const Clock& clock;  // borrowed
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
