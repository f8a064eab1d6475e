#include "suggestions.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "muster/base/base.h"

namespace muster::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t files_max = 10'000;  // of a folder

// Those that people are meant to use.
std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

bool can_be_started(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) &&
         (file.extension() == ".py" || ::access(file.c_str(), X_OK) == 0);
}

std::vector<std::string> files_in(const fs::path& folder, bool (*is_wanted)(const fs::path&)) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end && names.size() < files_max;
       entry.increment(error))
    if (is_wanted == nullptr || is_wanted(entry->path())) names.push_back(entry->path().filename().string());
  return names;
}

// Two letters are near to any others.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& names) {
  if (word.size() <= 2) return std::nullopt;
  const std::vector<std::string_view> views(names.begin(), names.end());
  const auto found = nearest_name(word, views);
  return found ? std::optional<std::string>(*found) : std::nullopt;
}

std::string question(std::string_view meant) { return fmt::format(": did you mean '{}'?", meant); }

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const auto meant = nearest(word, names);
  return meant ? question(*meant) : "";
}

Parsed last_parsed(const CLI::App& app) {
  Parsed last{.command = &app, .words = app.get_name()};
  for (auto below = app.get_subcommands(); !below.empty(); below = last.command->get_subcommands()) {
    last.command = below.front();
    last.words += ' ' + last.command->get_name();
  }
  return last;
}

std::string unknown_word(const CLI::App& command, const std::string& word) {
  if (word.starts_with('-')) {
    const std::string name = word.substr(0, word.find('='));
    return fmt::format("there is no option '{}'{}", name, did_you_mean(name, names_of_options(command)));
  }
  const auto names = names_of_commands(command);
  if (names.empty()) return fmt::format("'{}' is one word too many", word);
  return fmt::format("there is no subcommand '{}'{}", word, did_you_mean(word, names));
}

std::string did_you_mean_file(const std::string& name) {
  const fs::path folder = fs::path(name).parent_path();
  const auto meant =
      nearest(fs::path(name).filename().string(), files_in(folder.empty() ? "." : folder, nullptr));
  return meant ? question((folder / *meant).string()) : "";
}

std::string did_you_mean_program(const std::string& name) {
  if (can_be_started(name + ".py")) return question(name + ".py");
  if (const auto here = nearest(name, files_in(".", can_be_started)))
    return question(here->ends_with(".py") ? *here : "./" + *here);
  std::vector<std::string> names;
  for (const std::string& folder : CLI::detail::split(real_environment().get("PATH").value_or(""), ':'))
    for (std::string& file : files_in(folder, nullptr)) names.push_back(std::move(file));
  return did_you_mean(name, names);
}

}  // namespace muster::app
