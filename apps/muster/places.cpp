#include "places.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <sstream>
#include <vector>

#include "muster/base/base.h"

namespace muster::app {
namespace {

namespace fs = std::filesystem;

// The path that a shell found for the program, links not followed: a link in .venv/bin means that
// environment.
fs::path invoked_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return fs::absolute(program);
  std::istringstream folders(real_environment().get("PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code ignored;
    if (fs::exists(fs::path(folder) / program, ignored)) return fs::absolute(fs::path(folder) / program);
  }
  return program;
}

// The folder of this program's file: <prefix>/bin, or <build>/apps/muster.
fs::path own_folder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

// Where pip or a distribution may have put the package beside <prefix>/bin: Fedora has lib64.
std::vector<fs::path> possible_packages() {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const char* libraries : {"lib", "lib64"})
    for (const auto& entry : fs::directory_iterator(own_folder().parent_path() / libraries, ignored))
      for (const char* packages : {"site-packages", "dist-packages"})
        found.push_back(entry.path() / packages / "muster");
  return found;
}

bool holds_cmake_package(const fs::path& prefix) {
  if (is_there(prefix / "lib" / "cmake" / "Muster" / "MusterConfig.cmake")) return true;
  std::error_code ignored;  // lib/x86_64-linux-gnu in Debian's packages
  for (const auto& entry : fs::directory_iterator(prefix / "lib", ignored))
    if (is_there(entry.path() / "cmake" / "Muster" / "MusterConfig.cmake")) return true;
  return false;
}

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string python_for_scripts(const std::string& program) {
  const fs::path folder = invoked_path(program).parent_path();
  const fs::path python = folder / "python3";
  std::error_code ignored;
  const bool is_environment = fs::exists(folder.parent_path() / "pyvenv.cfg", ignored);
  return is_environment && fs::exists(python, ignored) ? python.string() : "python3";
}

std::optional<std::string> compat_folder() {
  std::vector<fs::path> folders = {own_folder().parent_path().parent_path() / "python_compat"};  // of a build
  for (const fs::path& package : possible_packages()) folders.push_back(package / "compat");
  for (const fs::path& folder : folders)
    if (is_there(folder / "mindspore" / "__init__.py")) return folder.string();
  return std::nullopt;
}

std::optional<std::string> cmake_prefix() {
  std::vector<fs::path> prefixes = possible_packages();
  prefixes.push_back(own_folder().parent_path());
  for (const fs::path& prefix : prefixes)
    if (holds_cmake_package(prefix)) return prefix.string();
  return std::nullopt;
}

Result<std::string> make_log_folder(const std::string& parent) {
  const std::string name = fmt::format("{}/{:%Y-%m-%d_%H-%M-%S}", parent, fmt::localtime(std::time(nullptr)));
  std::error_code error;
  fs::create_directories(parent, error);
  for (int attempt = 1; !error && attempt < 100;
       ++attempt) {  // another job may have begun in the same second
    const std::string folder = attempt == 1 ? name : fmt::format("{}_{}", name, attempt);
    if (fs::create_directory(folder, error)) return folder;
  }
  return fail(Code::io, error ? error.message() : "a hundred jobs have begun in this second");
}

}  // namespace muster::app
