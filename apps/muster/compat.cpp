// muster compat: what of MindSpore a script needs. The reading is Python's: muster._check.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "places.h"

namespace muster::app {
namespace {

struct CompatFlags {
  bool json = false;
  std::vector<std::string> paths;
};

// This process becomes the checker; only an error returns.
int check_scripts(const CompatFlags& flags, const std::string& program) {
  const auto folder = compat_folder();
  if (!folder)
    return refuse(
        "compat check",
        "the Python package is not installed beside this program: install both with `pip install .`, "
        "or make the build tree with ./dev setup",
        1);
  const std::string paths = real_environment().get("PYTHONPATH").value_or("");
  ::setenv("PYTHONPATH", (paths.empty() ? *folder : *folder + ':' + paths).c_str(), 1);
  std::vector<std::string> words = {python_for_scripts(program), "-m", "muster._check"};
  if (flags.json) words.emplace_back("--json");
  words.emplace_back("--");
  words.insert(words.end(), flags.paths.begin(), flags.paths.end());
  return become("compat check", std::move(words), 1);
}

}  // namespace

void add_compat(CLI::App& app, Invocation& invocation) {
  CLI::App* compat =
      app.add_subcommand("compat", "What scripts for MindSpore find here: compat check train.py");
  compat->require_subcommand(1);
  CLI::App* check = compat->add_subcommand(
      "check", "Name what scripts use of MindSpore that is missing or differs, without running them");
  const auto flags = std::make_shared<CompatFlags>();
  check->add_option("paths", flags->paths, "Scripts, or folders: every .py file below them")->required();
  check->add_flag("--json", flags->json,
                  "Print a list of objects with file, line, column, kind, name and way");
  check->footer(
      "\nEach line has the file, the line, the name and the way out:\n"
      "  train.py:12: mindspore.ops.GatherNd is missing: mindspore.ops.gather_nd is there\n"
      "Kinds are missing, argument (a keyword that is not taken), unknown (to MindSpore 2.7 as well) and "
      "differs.\n"
      "Ends with 0 when nothing is missing (names that differ may be there), with 1 when something is, and "
      "with 2\n"
      "when a file cannot be read.");
  check->callback([flags, &invocation] { invocation.exit_code = check_scripts(*flags, invocation.program); });
}

}  // namespace muster::app
