// muster profile: where the time of a script goes.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "commands.h"
#include "places.h"

namespace muster::app {
namespace {

struct ProfileFlags {
  std::string folder = "muster-profile";
  std::vector<std::string> command;
};

// os._exit and SIGKILL end a script before it has written any.
void tell_of_no_profile(const std::string& folder, std::filesystem::file_time_type since) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (entry.path().filename().string().starts_with("rank") && entry.last_write_time(ignored) >= since)
      return;
  }
  fmt::print(
      stderr,
      "muster profile: the script has left no profile in '{}': os._exit() and SIGKILL end it before one is "
      "written. train.Profiler(start, stop) writes one behind step `stop`.\n",
      folder);
}

int profile(ProfileFlags flags, const CLI::App& command, const std::string& program) {
  if (flags.command.empty())
    return refuse("profile", "name a script or the folder of a profile: muster profile train.py");
  if (const auto known = check_option(command, flags.command); !known)
    return refuse("profile", known.error().message);
  std::error_code error;
  if (flags.command.size() == 1 && std::filesystem::is_directory(flags.command.front(), error))
    return become("profile", {python_for_scripts(program), "-c",
                              "from muster import _profile; _profile.show()", flags.command.front()});
  if (const auto complete = complete_command(flags.command, program); !complete)
    return refuse("profile", complete.error().message);
  const std::string folder = std::filesystem::absolute(flags.folder).string();
  ::setenv("MUSTER_PROFILE", folder.c_str(), 1);
  // A file system's clock may lag behind by a tick.
  const auto since = std::filesystem::file_time_type::clock::now() - std::chrono::milliseconds(20);
  return run_watched("profile", std::move(flags.command), [&] { tell_of_no_profile(folder, since); });
}

}  // namespace

void add_profile(CLI::App& app, Invocation& invocation) {
  auto flags = std::make_shared<ProfileFlags>();
  CLI::App* command = app.add_subcommand(
      "profile", "Show where the time of a script goes: data, ops, other workers, Python; and a trace");
  command->footer(
      "\nAfter the options come the script and its own arguments, or the folder of a profile:\n"
      "  muster profile train.py --epochs 1\n"
      "  muster run -n 4 --profile muster-profile train.py\n"
      "  muster profile muster-profile\n"
      "The script runs to its end and is recorded all the time. Of a job each worker writes what it did "
      "into\n"
      "the folder, and the last line above shows them all.");
  command->add_option("--out", flags->folder, "Folder of the profile (default: muster-profile)")
      ->type_name("FOLDER");
  command->prefix_command();
  command->callback([command, flags, &invocation] {
    flags->command = command->remaining();
    take_options_behind(*command, flags->command);
    invocation.exit_code = profile(*flags, *command, invocation.program);
  });
}

}  // namespace muster::app
