// Agent of a launcher on another host: starts and ends processes there on command, and sends back what they
// write. It is the body of `muster agent`; ssh starts it and carries both directions.
//
// It holds a lease: without a word of the launcher for ten seconds, or without the connection, everything
// that it started is killed, whatever it has become.
#pragma once

#include <string>

#include "muster/base/base.h"

namespace muster::launch {

// The whole work of the process, over standard input and output; returns its exit code. Nothing that it
// started outlives it. For a process of one thread.
int run_agent(const Environment& environment, const Clock& clock);

// The same within a keeper (keeper.h) of the caller's. `run_folder` is a name for the folder of files
// (run_folder.h), made here.
int run_agent_kept(const std::string& run_folder, int keeper_fd, Duration lease, const Clock& clock);

}  // namespace muster::launch
