// The command that a user gives: a script or a program, and its arguments.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "commands.h"
#include "muster/launch/launch.h"
#include "muster/net/net.h"
#include "places.h"

namespace muster::app {
namespace {

// A file that is named with its folder can be looked at before it is started.
Result<> check_program(const std::string& program) {
  namespace fs = std::filesystem;
  if (program.find('/') == std::string::npos) return {};
  std::error_code ignored;
  if (!fs::exists(program, ignored))
    return fail(Code::not_found, fmt::format("there is no program '{}'", program));
  if (fs::is_directory(program, ignored))
    return fail(Code::invalid_argument, fmt::format("'{}' is a folder: name a script or a program", program));
  if (::access(program.c_str(), X_OK) != 0)
    return fail(
        Code::invalid_argument,
        fmt::format("'{}' is not executable: make it so (chmod +x {}), or name what runs it (bash {})",
                    program, program, program));
  return {};
}

}  // namespace

Result<> check_command(const std::vector<std::string>& command) {
  if (command.empty()) return {};
  const std::string& first = command.front();
  if (first.starts_with('-'))
    return fail(Code::invalid_argument, fmt::format("there is no option '{}'", first));
  if (!launch::is_python_script(first)) return check_program(first);
  std::error_code ignored;
  if (!std::filesystem::exists(first, ignored))
    return fail(Code::not_found, fmt::format("there is no script '{}' in {}", first,
                                             std::filesystem::current_path(ignored).string()));
  if (::access(first.c_str(), R_OK) != 0)
    return fail(Code::invalid_argument,
                fmt::format("the script '{}' cannot be read: chmod +r {}", first, first));
  return {};
}

Result<> complete_command(std::vector<std::string>& command, const std::string& program) {
  MUSTER_TRY_VOID(check_command(command));
  if (!command.empty() && launch::is_python_script(command.front()))
    command.insert(command.begin(), python_for_scripts(program));
  return {};
}

Result<launch::PartialSettings> read_job_file(const std::string& name, const std::string& folder) {
  auto file = net::read_small_file(name, launch::job_file_bytes_max);
  if (!file) return fail(file.error().code, fmt::format("--job {}: {}", name, file.error().message));
  return launch::parse_job_file(file->text, {.name = name, .folder = folder});
}

int refuse(std::string_view command, const std::string& message, int exit_code) {
  fmt::print(stderr, "muster {}: {}\n", command, message);
  return exit_code;
}

}  // namespace muster::app
