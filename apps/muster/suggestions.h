// Words of a command line that nobody knows, and what was probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::app {

// ": did you mean 'run'?" where one of the names is near, else nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

// Of the command that was parsed last ("certs", then "new"), with the words that lead to it ("muster certs").
struct Parsed {
  const CLI::App* command = nullptr;
  std::string words = {};
};
Parsed last_parsed(const CLI::App& app);

// What is wrong with a word that stands where a subcommand or an option of `command` was expected.
std::string unknown_word(const CLI::App& command, const std::string& word);

// A file name that is near to one that is not there: "trian.py" means "train.py" beside it.
std::string did_you_mean_file(const std::string& name);
// The same of a program: a script or program of this folder, or one of PATH's.
std::string did_you_mean_program(const std::string& name);

}  // namespace muster::app
