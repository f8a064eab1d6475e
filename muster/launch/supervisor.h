// Starts the processes of a LaunchSpec, shows and keeps what they write, and ends all of them when one fails.
#pragma once

#include <chrono>
#include <string>

#include "muster/launch/launch_spec.h"

namespace muster::launch {

struct SupervisorOptions {
  std::string log_folder = {};  // exists; gets one file for each process
  // After the first failure the others may notice it themselves and say so; then they are asked to end
  // (SIGTERM), and after the grace they are killed. A forwarded signal is followed by the grace alone.
  Duration settle = std::chrono::seconds(3);
  Duration grace = std::chrono::seconds(5);
  int keeper_fd = -1;  // readable: the keeper is gone, and everything has to end at once
};

// Blocks until every process has ended. Returns 0, or the exit code of the process that failed first, or 128
// and the number of the signal that ended the job. Whatever else the processes left behind is killed.
//
// It is meant to be the whole work of a process: it has one thread, takes over the signals, and reaps every
// child.
int supervise(const LaunchSpec& spec, const SupervisorOptions& options);

}  // namespace muster::launch
