// The command that a user gives: a script or a program, and its arguments.
#include <fmt/format.h>

#include <filesystem>

#include "commands.h"
#include "places.h"

namespace muster::app {
namespace {

bool is_python_script(const std::string& word) {
  return word.size() > 3 && word.compare(word.size() - 3, 3, ".py") == 0;
}

}  // namespace

Result<> complete_command(std::vector<std::string>& command, const std::string& program) {
  if (command.empty()) return {};
  if (command.front().starts_with('-'))
    return fail(Code::invalid_argument, fmt::format("there is no option '{}'", command.front()));
  if (!is_python_script(command.front())) return {};
  std::error_code ignored;
  if (!std::filesystem::exists(command.front(), ignored))
    return fail(Code::not_found, fmt::format("there is no script '{}' in {}", command.front(),
                                             std::filesystem::current_path(ignored).string()));
  command.insert(command.begin(), python_for_scripts(program));
  return {};
}

}  // namespace muster::app
