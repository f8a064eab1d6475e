// muster agent: the other end of `muster run --hosts`, started by it through ssh.
#include "commands.h"
#include "muster/launch/launch.h"

namespace muster::app {

void add_agent(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("agent", "Start processes on this host for a launcher that speaks through ssh");
  command->footer("\n`muster run --hosts` starts it on the other hosts; it is of no use to people.");
  command->group("");  // not in the list of commands
  command->callback([&invocation] {
    const std::string run_folder = launch::new_run_folder(real_environment());
    invocation.exit_code =
        launch::keep([&](int keeper_fd) { return launch::run_agent(run_folder, keeper_fd); }, run_folder);
  });
}

}  // namespace muster::app
