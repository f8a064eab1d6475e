// muster runs and muster autopsy: jobs that `muster run` has started, how two of them differ, and which rank
// of one diverged first.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "commands.h"
#include "muster/launch/runs/runs.h"

namespace muster::app {
namespace {

struct RunsFlags {
  std::string folder = "muster-logs";
  std::string a, b;
  bool json = false;
};

int print(std::string_view command, const Result<std::string>& text) {
  if (!text) return refuse(command, text.error().message, 1);
  fmt::print("{}", *text);
  return 0;
}

}  // namespace

void add_runs(CLI::App& app, Invocation& invocation) {
  const auto flags = std::make_shared<RunsFlags>();
  CLI::App* command =
      app.add_subcommand("runs", "List the runs of a folder: script, time, state, steps, loss");
  command->add_option("folder", flags->folder, "Folder of runs, or of one (default: muster-logs)");
  command->add_flag("--json", flags->json, "Print JSON");
  command->callback([command, flags, &invocation] {
    if (command->get_subcommands().empty())
      invocation.exit_code =
          print("runs", flags->json ? launch::runs_json(flags->folder) : launch::runs_text(flags->folder));
  });
  CLI::App* compare = command->add_subcommand(
      "compare", "Compare two runs: settings, versions, code, numbers; only what differs is shown");
  compare->add_option("a", flags->a, "Folder of a run, or its name in muster-logs")->required();
  compare->add_option("b", flags->b, "Folder of the other one")->required();
  compare->add_flag("--json", flags->json, "Print JSON");
  CLI::App* autopsy = app.add_subcommand(
      "autopsy", "Tell which rank of a run diverged first, from the flight recorders of its workers");
  autopsy->add_option("run", flags->a, "Folder of the run, or its name in muster-logs; it may still run")
      ->required();
  autopsy->callback(
      [flags, &invocation] { invocation.exit_code = print("autopsy", launch::autopsy_text(flags->a)); });
  compare->callback([flags, &invocation] {
    invocation.exit_code = print("runs compare", flags->json ? launch::comparison_json(flags->a, flags->b)
                                                             : launch::comparison_text(flags->a, flags->b));
  });
}

}  // namespace muster::app
