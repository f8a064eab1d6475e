// muster data: made-up data sets.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "muster/data/data.h"

namespace muster::app {
namespace {

int write_cifar10(const data::SyntheticOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) {
    fmt::print(stderr, "muster data: cannot create folder '{}': {}\n", options.folder, error.message());
    return 1;
  }
  const auto written = data::write_synthetic_cifar10(options, real_files());
  if (!written) {
    fmt::print(stderr, "muster data: {}\n", written.error().message);
    return 1;
  }
  fmt::print("Wrote synthetic pictures in the format of CIFAR-10 (they are no photographs) to {}:\n",
             options.folder);
  for (const std::string& name : *written) fmt::print("  {}\n", name);
  return 0;
}

}  // namespace

void add_data(CLI::App& app, Invocation& invocation) {
  auto* data = app.add_subcommand("data", "Made-up data sets for demos, tests and measurements");
  data->require_subcommand(1);
  auto* cifar = data->add_subcommand("synthetic-cifar10",
                                     "Write synthetic pictures that a net can learn, in the binary format of "
                                     "CIFAR-10. Files that are there and are not ours are never replaced");
  auto options = std::make_shared<data::SyntheticOptions>();
  cifar->add_option("folder", options->folder, "Where to write; made if it is not there")->required();
  cifar->add_option("--records", options->records, "Pictures in each of the six files")
      ->capture_default_str();
  cifar->add_option("--seed", options->seed, "The same seed gives the same bytes")->capture_default_str();
  cifar->callback([options, &invocation] { invocation.exit_code = write_cifar10(*options); });
}

}  // namespace muster::app
