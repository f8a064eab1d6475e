// What other hosts' launchers start here through ssh: muster agent for `muster run --hosts`, and muster
// mpi-daemon, which the job's own sshd starts in place of whatever it was asked for.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "commands.h"
#include "muster/launch/launch.h"

namespace muster::app {
namespace {

int become_daemon() {
  const auto asked = real_environment().get("SSH_ORIGINAL_COMMAND").value_or("");
  auto start = launch::daemon_start(asked, real_environment());
  if (!start) {
    fmt::print(stderr, "muster: {}\n", start.error().message);
    return exit_code_usage;
  }
  for (const auto& [name, value] : start->environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (std::string& word : start->words) words.push_back(word.data());
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  fmt::print(stderr, "{}: {}\n", start->words.front(),
             errno == ENOENT ? "command not found" : std::strerror(errno));
  return exit_code_no_program;
}

}  // namespace

void add_agent(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("agent", "Start processes on this host for a launcher that speaks through ssh");
  command->footer("\n`muster run --hosts` starts it on the other hosts; it is of no use to people.");
  command->group("");  // not in the list of commands
  command->callback(
      [&invocation] { invocation.exit_code = launch::run_agent(real_environment(), real_clock()); });
  CLI::App* daemon = app.add_subcommand("mpi-daemon", "Start mpirun's daemon, if that is what ssh was asked");
  daemon->group("");
  daemon->callback([&invocation] { invocation.exit_code = become_daemon(); });
}

}  // namespace muster::app
