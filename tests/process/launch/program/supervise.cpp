// supervise <log folder> <settle ms> <grace ms> <shell command> ...: each command is a worker.
#include <cstdlib>
#include <span>

#include "muster/launch/launch.h"

int main(int argc, char** argv) {
  using namespace muster;
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() < 5) return 2;
  launch::LaunchSpec spec;
  for (char* command : arguments.subspan(4)) {
    const std::string rank = std::to_string(spec.processes.size());
    spec.processes.push_back({.role = cluster::Role::worker,
                              .label = "worker " + rank,
                              .arguments = {"sh", "-c", command},
                              .environment = {{"RANK", rank}},
                              .log_name = "worker_" + rank + ".log"});
  }
  return launch::keep([&](int keeper_fd) {
    return launch::supervise(spec, {.log_folder = arguments[1],
                                    .settle = std::chrono::milliseconds(std::atoi(arguments[2])),
                                    .grace = std::chrono::milliseconds(std::atoi(arguments[3])),
                                    .keeper_fd = keeper_fd});
  });
}
