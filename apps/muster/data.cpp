// muster data: data sets to try things with.
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

int write_text(const data::TinyTextOptions& options) {
  const auto written = data::write_tiny_text(options, real_files());
  if (!written) {
    fmt::print(stderr, "muster data: {}\n", written.error().message);
    return 1;
  }
  fmt::print("Wrote {} bytes of text from {} to {}\n", *written, options.folder, options.file);
  return 0;
}

void add_tiny_text(CLI::App& data, Invocation& invocation) {
  auto* text =
      data.add_subcommand("tiny-text",
                          "Write a small English text, made of the licences that every Debian has, to try "
                          "language models with. A file that holds something else is never replaced");
  auto options = std::make_shared<data::TinyTextOptions>();
  text->add_option("file", options->file, "Where to write")->required();
  text->add_option("--from", options->folder, "A folder whose files are the text")->capture_default_str();
  text->callback([options, &invocation] { invocation.exit_code = write_text(*options); });
}

}  // namespace

void add_data(CLI::App& app, Invocation& invocation) {
  auto* data = app.add_subcommand("data", "Data sets for demos, tests and measurements");
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
  add_tiny_text(*data, invocation);
}

}  // namespace muster::app
