// muster env, compat-path, cmake-path, version, help: what Muster sees.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "muster/launch/launch.h"
#include "places.h"
#include "suggestions.h"

namespace muster::app {
namespace {

int print_path(const std::optional<std::string>& path, const char* advice) {
  if (!path) {
    fmt::print(stderr, "{}\n", advice);
    return 1;
  }
  fmt::print("{}\n", *path);
  return 0;
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
      ->callback([&invocation] {
        invocation.exit_code =
            print_path(compat_folder(),
                       "muster compat-path: the Python package is not installed beside this program.\n"
                       "Install both with `pip install .`, or make the build tree with `./dev setup`.");
      });
  app.add_subcommand("cmake-path",
                     "The folder for cmake's -DCMAKE_PREFIX_PATH, where find_package(Muster) looks")
      ->callback([&invocation] {
        invocation.exit_code = print_path(
            cmake_prefix(),
            "muster cmake-path: the C++ library is not installed beside this program.\n"
            "A wheel has it, and Debian's libmuster-dev; from a build:\n"
            "cmake --install build --prefix PREFIX --component development, and the same with cli.");
      });
  const std::string version = fmt::format("muster {}", MUSTER_VERSION);
  app.set_version_flag("--version", version, "The version of Muster");
  app.add_subcommand("version", "The version of Muster, as --version prints it")->callback([version] {
    fmt::print("{}\n", version);
  });
  add_help(app, invocation);
}

}  // namespace muster::app
