// muster explain: the plans and traces of a script.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"

namespace muster::app {
namespace {

struct ExplainFlags {
  bool trace = false;
  std::string svg;
  std::uint32_t workers = 0;  // 0: not given
  bool measure = false;
  std::vector<std::string> command;
};

int explain(ExplainFlags flags, const CLI::App& command, const std::string& program) {
  if (flags.command.empty()) return refuse("explain", "name a script: muster explain train.py");
  if (const auto known = check_option(command, flags.command); !known)
    return refuse("explain", known.error().message);
  if (const auto complete = complete_command(flags.command, program); !complete)
    return refuse("explain", complete.error().message);
  if (flags.trace && !flags.svg.empty())
    return refuse("explain",
                  "--svg draws what a plan is made of, and --trace shows none: choose one of them");
  if (!flags.svg.empty()) ::setenv("MUSTER_EXPLAIN_SVG", flags.svg.c_str(), 1);
  if (flags.trace && flags.workers > 1)
    return refuse("explain", "--parallel shows plans, and --trace shows none: choose one of them");
  if (flags.measure && flags.workers < 2)
    return refuse("explain", "--measure is about the calls between workers: --parallel says how many");
  ::setenv("MUSTER_EXPLAIN_WORKERS", std::to_string(std::max(1u, flags.workers)).c_str(), 1);
  if (flags.workers > 0) provide_call_times("explain", flags.workers, flags.measure);
  ::setenv("MUSTER_EXPLAIN", flags.trace ? "trace" : "plan", 1);
  return run_watched("explain", std::move(flags.command));
}

}  // namespace

void add_explain(CLI::App& app, Invocation& invocation) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* command = app.add_subcommand(
      "explain", "Show the plan of a script's first step: kernels, formats, memory, work, traces");
  command->footer(
      "\nAfter the options come the script or program and its own arguments:\n"
      "  muster explain train.py --epochs 10\n"
      "  muster explain train.py --parallel 4 -- --epochs 10\n"
      "  muster explain -m package.train --epochs 10\n"
      "The script runs in one process, without a cluster, up to its first step of training or evaluation. "
      "The\n"
      "step of a Model is shown and does not run; a loop written by hand runs once, and every plan that it "
      "ran\n"
      "is shown. With --trace the script runs to its end, and each trace is shown with the reason for it: a\n"
      "script that traces again and again is slow.");
  command->add_flag("--trace", flags->trace, "Show every trace and why it was made, and run the script");
  command->add_option("--svg", flags->svg,
                      "Write the picture of a placed network over its workers to this file");
  command
      ->add_option(
          "--parallel", flags->workers,
          "Show the plan of the first of so many workers, as a mesh, Zero or data parallel divide it: how "
          "each op is cut, what is sent, what a worker holds, and how long it will take here, measured")
      ->check(CLI::Range(1u, 65536u));
  command->add_flag("--measure", flags->measure,
                    "With --parallel: measure the calls between workers anew, which is else done once");
  command->prefix_command();
  command->callback([command, flags, &invocation] {
    flags->command = command->remaining();
    take_options_behind(*command, flags->command);
    invocation.exit_code = explain(*flags, *command, invocation.program);
  });
}

}  // namespace muster::app
