// Agent of a launcher on another host: starts and ends processes there on command, and sends back what they
// write. It is the body of `muster agent`; ssh starts it and carries both directions.
//
// It holds a lease: without a word of the launcher for ten seconds, or without the connection, everything
// that it started is killed, whatever it has become.
#pragma once

#include <string>

#include "muster/launch/hosts/agent_messages.h"

namespace muster::launch {

// Speaks over standard input and output. Returns an exit code. `run_folder` is a name for the folder of files
// (run_folder.h), made here. To be called within `keep`, as the whole work of the process.
int run_agent(const std::string& run_folder, int keeper_fd, Duration lease = agent::lease_duration);

}  // namespace muster::launch
