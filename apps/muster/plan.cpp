// muster plan: how a script's step is best divided over some workers.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"

namespace muster::app {
namespace {

struct PlanFlags {
  std::uint32_t workers = 2;
  std::uint64_t memory_bytes = 0;  // 0: any
  bool json = false;
  bool measure = false;
  std::vector<std::string> command;
};

int plan(PlanFlags flags, const CLI::App& command, const std::string& program) {
  if (flags.command.empty()) return refuse("plan", "name a script: muster plan -n 8 train.py");
  if (const auto known = check_option(command, flags.command); !known)
    return refuse("plan", known.error().message);
  if (const auto complete = complete_command(flags.command, program); !complete)
    return refuse("plan", complete.error().message);
  provide_call_times("plan", flags.workers, flags.measure);
  ::setenv("MUSTER_PLAN",
           fmt::format("{},{}{}", flags.workers, flags.memory_bytes, flags.json ? ",json" : "").c_str(), 1);
  ::setenv("MUSTER_EXPLAIN", "search", 1);
  return run_watched("plan", std::move(flags.command));
}

}  // namespace

void add_plan(CLI::App& app, Invocation& invocation) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* command = app.add_subcommand(
      "plan", "Find how the step of a script is best divided over workers of this machine");
  command->footer(
      "\nOptions stand before the script, or, where none does, behind it; its own arguments behind them:\n"
      "  muster plan -n 8 --memory 2GiB train.py --epochs 10\n"
      "  muster plan train.py -n 8 --memory 2GiB -- --epochs 10\n"
      "The script runs in one process up to its first step that trains, which is not taken. Every mesh of\n"
      "samples by weights, with and without Zero, is timed as the first of the workers would compute it. "
      "What\n"
      "needs more memory is dropped. The line that a script needs for the best one is printed at the end.");
  command->add_option("-n", flags->workers, "So many workers (default: 2)")->check(CLI::Range(1u, 1024u));
  command
      ->add_option("--memory", flags->memory_bytes,
                   "Drop plans of which a worker needs more than this: 2GiB, 500MiB, or bytes")
      ->transform(CLI::AsSizeValue(false));
  command->add_flag("--json", flags->json, "One line of JSON, the last that is printed");
  command->add_flag("--measure", flags->measure,
                    "Measure the calls between workers anew, which is else done once");
  command->prefix_command();
  command->callback([command, flags, &invocation] {
    flags->command = command->remaining();
    take_options_behind(*command, flags->command);
    invocation.exit_code = plan(*flags, *command, invocation.program);
  });
}

}  // namespace muster::app
