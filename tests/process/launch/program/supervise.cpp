// supervise <log folder> <settle ms> <grace ms> <restarts> <restart delay ms> <shell command> ...: each
// command is a worker, which finds the folder in $FOLDER; one that begins with ": scheduler;" or ": service;"
// is that. $TAIL holds the one rank that is shown. $FOLDER/run is there while they run, with a file "secret".
//
// supervise agent <run folder> <lease ms>: an agent, as `muster agent` is one.
#include <cstdlib>
#include <span>
#include <string>

#include "muster/launch/launch.h"

int main(int argc, char** argv) {
  using namespace muster;
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() == 4 && std::string_view(arguments[1]) == "agent")
    return launch::keep(
        [&](int keeper_fd) {
          return launch::run_agent(arguments[2], keeper_fd,
                                   std::chrono::milliseconds(std::atoi(arguments[3])));
        },
        arguments[2]);
  if (arguments.size() < 7) return 2;
  launch::LaunchSpec spec;
  for (char* command : arguments.subspan(6)) {
    const bool is_scheduler = std::string_view(command).starts_with(": scheduler;");
    const bool is_service = std::string_view(command).starts_with(": service;");
    const std::string rank = std::to_string(spec.processes.size());
    spec.processes.push_back(
        {.kind = is_service ? launch::ProcessSpec::Kind::service : launch::ProcessSpec::Kind::work,
         .role = is_scheduler ? "scheduler" : "worker",
         .label = "worker " + rank,
         .arguments = {"sh", "-c", command},
         .environment = {{"RANK", rank}, {"FOLDER", arguments[1]}},
         .log_name = "worker_" + rank + ".log"});
  }
  const std::string run_folder = std::string(arguments[1]) + "/run";
  spec.files = {{.path = run_folder + "/secret", .contents = "sesame"}};
  launch::SupervisorOptions options = {
      .log_folder = arguments[1],
      .run_folder = run_folder,
      .settle = std::chrono::milliseconds(std::atoi(arguments[2])),
      .grace = std::chrono::milliseconds(std::atoi(arguments[3])),
      .restarts_max = static_cast<std::size_t>(std::atoi(arguments[4])),
      .recovery_folder = std::string(arguments[1]) + "/recovery",
      .restart_delay = std::chrono::milliseconds(std::atoi(arguments[5])),
      .restart_delay_max = std::chrono::milliseconds(std::atoi(arguments[5]))};
  if (const char* tail = std::getenv("TAIL"); tail != nullptr) options.tail = {std::atoi(tail)};
  return launch::keep(
      [&](int keeper_fd) {
        options.keeper_fd = keeper_fd;
        if (!launch::make_run_folder(run_folder)) return 3;
        return launch::supervise(spec, options);
      },
      run_folder);
}
