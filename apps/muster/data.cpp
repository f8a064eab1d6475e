// muster data: data sets to try things with.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "muster/data/data.h"

namespace muster::app {
namespace {

bool make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fmt::print(stderr, "muster data: cannot create folder '{}': {}\n", folder, error.message());
  return !error;
}

int write_cifar10(const data::SyntheticOptions& options) {
  if (!make_folder(options.folder)) return 1;
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

int write_clicks(const data::SyntheticClickOptions& options) {
  if (!make_folder(options.folder)) return 1;
  const auto written = data::write_synthetic_clicks(options, real_files());
  if (!written) {
    fmt::print(stderr, "muster data: {}\n", written.error().message);
    return 1;
  }
  fmt::print("Wrote synthetic clicks to {}, whose probabilities have an AUC of {:.4f}:\n", options.folder,
             written->auc_limit);
  for (const std::string& name : written->names) fmt::print("  {}\n", name);
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

void add_clicks(CLI::App& data, Invocation& invocation) {
  auto* clicks = data.add_subcommand("synthetic-clicks",
                                     "Write clicks that a recommender can learn (ids, numbers and labels, as "
                                     "arrays of NumPy), and the AUC that none can beat. A file that holds "
                                     "something else is never replaced");
  auto options = std::make_shared<data::SyntheticClickOptions>();
  clicks->add_option("folder", options->folder, "Where to write; made if it is not there")->required();
  clicks->add_option("--samples", options->samples, "To learn from; a quarter as many to test with")
      ->capture_default_str();
  clicks->add_option("--fields", options->fields, "Ids of a sample")->capture_default_str();
  clicks->add_option("--vocabulary", options->vocabulary, "Ids that a field has")->capture_default_str();
  clicks->add_option("--numbers", options->numbers, "Numbers of a sample, beside its ids")
      ->capture_default_str();
  clicks->add_option("--seed", options->seed, "The same seed gives the same bytes")->capture_default_str();
  clicks->callback([options, &invocation] { invocation.exit_code = write_clicks(*options); });
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
  add_clicks(*data, invocation);
  add_tiny_text(*data, invocation);
}

}  // namespace muster::app
