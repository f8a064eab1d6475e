// muster env, compat-path, version, help: what Muster sees.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "muster/launch/launch.h"
#include "places.h"
#include "suggestions.h"

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

// The help of `muster`, or of the subcommand that the words name: certs new.
int print_help(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  for (const std::string& word : words) {
    const auto found =
        command->get_subcommands([&](const CLI::App* below) { return below->get_name() == word; });
    if (found.empty()) return refuse("help", unknown_word(*command, word));
    command = found.front();
    name += ' ' + word;
  }
  fmt::print("{}", command->get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal));
  return 0;
}

void add_help(CLI::App& app, Invocation& invocation) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "What a subcommand does and its options: muster help run");
  command->add_option("command", *words, "A subcommand, as in: muster help certs new");
  command->callback([&app, words, &invocation] { invocation.exit_code = print_help(app, *words); });
}

}  // namespace

void add_information(CLI::App& app, Invocation& invocation) {
  app.add_subcommand("env", "Every environment variable that Muster reads: value, default, range, origin")
      ->callback([] { fmt::print("{}", cluster::variables_text(real_environment())); });
  app.add_subcommand("compat-path", "The folder to put into PYTHONPATH for `import mindspore`")
      ->callback([&invocation] { invocation.exit_code = print_compat_path(); });
  const std::string version = fmt::format("muster {}", MUSTER_VERSION);
  app.set_version_flag("--version", version, "The version of Muster");
  app.add_subcommand("version", "The version of Muster, as --version prints it")->callback([version] {
    fmt::print("{}\n", version);
  });
  add_help(app, invocation);
}

}  // namespace muster::app
