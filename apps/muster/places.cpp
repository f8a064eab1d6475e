#include "places.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <sstream>

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

bool holds_mindspore(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "mindspore" / "__init__.py", ignored);
}

}  // namespace

std::string python_for_scripts(const std::string& program) {
  const fs::path folder = invoked_path(program).parent_path();
  const fs::path python = folder / "python3";
  std::error_code ignored;
  const bool is_environment = fs::exists(folder.parent_path() / "pyvenv.cfg", ignored);
  return is_environment && fs::exists(python, ignored) ? python.string() : "python3";
}

std::optional<std::string> compat_folder() {
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  // <build>/apps/muster/muster beside <build>/python_compat
  const fs::path built = folder.parent_path().parent_path() / "python_compat";
  if (holds_mindspore(built)) return built.string();
  // <prefix>/bin/muster beside <prefix>/lib/python3.x/{site,dist}-packages/muster
  for (const auto& entry : fs::directory_iterator(folder.parent_path() / "lib", ignored))
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const fs::path installed = entry.path() / packages / "muster" / "compat";
      if (holds_mindspore(installed)) return installed.string();
    }
  return std::nullopt;
}

std::string make_log_folder(const std::string& parent) {
  const std::string name = fmt::format("{}/{:%Y-%m-%d_%H-%M-%S}", parent, fmt::localtime(std::time(nullptr)));
  std::error_code error;
  fs::create_directories(parent, error);
  for (int attempt = 1; attempt < 100; ++attempt) {  // another job may have begun in the same second
    const std::string folder = attempt == 1 ? name : fmt::format("{}_{}", name, attempt);
    if (fs::create_directory(folder, error)) return folder;
    if (error) break;
  }
  return {};
}

}  // namespace muster::app
