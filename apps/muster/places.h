// Installed places: the Python that belongs to this program, and the package that was installed with it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "muster/base/base.h"

namespace muster::app {

// Whether there is a file or folder; one that cannot be looked at is not there.
bool is_there(const std::filesystem::path& path);

// The Python for scripts: that of the virtual environment from which `program` was called, else "python3".
std::string python_for_scripts(const std::string& program);

// The folder that holds `mindspore/`, for PYTHONPATH: of the build tree, or of the installed package.
std::optional<std::string> compat_folder();

// The prefix of the C++ library that was installed with this program, for CMAKE_PREFIX_PATH.
std::optional<std::string> cmake_prefix();

// A new folder for the logs of one job, below `parent` and named after the time. Fails with the system's
// reason.
Result<std::string> make_log_folder(const std::string& parent);

}  // namespace muster::app
