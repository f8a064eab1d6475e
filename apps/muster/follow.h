// muster status --watch: the state of a job until it has ended.
#pragma once

#include <memory>

#include "muster/launch/launch.h"
#include "muster/net/net.h"

namespace muster::app {

// Redraws the table on a terminal; elsewhere prints a line for each change, or each state as a line of JSON.
// Returns the exit code: 0 when the job has ended, however it did; 1 when there is none.
int watch_status(const net::HostPort& scheduler, const std::shared_ptr<const net::Security>& security,
                 bool is_json);

}  // namespace muster::app
