// supervise <log folder> <settle ms> <grace ms> <restarts> <restart delay ms> <shell command> ...: each
// command is a worker, which finds the folder in $FOLDER; one that begins with ": scheduler;" is that.
#include <cstdlib>
#include <span>

#include "muster/launch/launch.h"

int main(int argc, char** argv) {
  using namespace muster;
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() < 7) return 2;
  launch::LaunchSpec spec;
  for (char* command : arguments.subspan(6)) {
    const bool is_scheduler = std::string_view(command).starts_with(": scheduler;");
    const std::string rank = std::to_string(spec.processes.size());
    spec.processes.push_back({.role = is_scheduler ? "scheduler" : "worker",
                              .label = "worker " + rank,
                              .arguments = {"sh", "-c", command},
                              .environment = {{"RANK", rank}, {"FOLDER", arguments[1]}},
                              .log_name = "worker_" + rank + ".log"});
  }
  return launch::keep([&](int keeper_fd) {
    return launch::supervise(spec, {.log_folder = arguments[1],
                                    .settle = std::chrono::milliseconds(std::atoi(arguments[2])),
                                    .grace = std::chrono::milliseconds(std::atoi(arguments[3])),
                                    .restarts_max = static_cast<std::size_t>(std::atoi(arguments[4])),
                                    .recovery_folder = std::string(arguments[1]) + "/recovery",
                                    .restart_delay = std::chrono::milliseconds(std::atoi(arguments[5])),
                                    .restart_delay_max = std::chrono::milliseconds(std::atoi(arguments[5])),
                                    .keeper_fd = keeper_fd});
  });
}
