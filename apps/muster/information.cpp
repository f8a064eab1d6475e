// muster env, compat-path, version: what Muster sees.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "commands.h"
#include "muster/launch/launch.h"
#include "places.h"

namespace muster::app {
namespace {

int print_compat_path() {
  if (const auto folder = compat_folder()) {
    fmt::print("{}\n", *folder);
    return 0;
  }
  fmt::print(stderr,
             "muster compat-path: the Python package is not installed beside this program.\n"
             "Install both with `pip install .`, or make the build tree with `./dev setup`.\n");
  return 1;
}

}  // namespace

void add_information(CLI::App& app, Invocation& invocation) {
  app.add_subcommand("env", "Every environment variable that Muster reads: value, default, range, origin")
      ->callback([] { fmt::print("{}", cluster::variables_text(real_environment())); });
  app.add_subcommand("compat-path", "The folder to put into PYTHONPATH for `import mindspore`")
      ->callback([&invocation] { invocation.exit_code = print_compat_path(); });
  const std::string version = fmt::format("muster {}", MUSTER_VERSION);
  app.set_version_flag("--version", version, "The version of Muster");
  app.add_subcommand("version", "The same")->callback([version] { fmt::print("{}\n", version); });
}

}  // namespace muster::app
