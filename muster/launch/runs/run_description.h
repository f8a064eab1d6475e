// Description of a run, as its folder keeps it (docs/formats/run-folder.md): what was started, with which
// settings and from where they came, on which host, with which versions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/launch/settings/sources.h"

namespace muster::launch {

inline constexpr int run_format = 1;

// Values whose names say that they are secrets are not kept.
bool names_secret(std::string_view name);
std::vector<JobFileEntry> without_secrets(std::vector<JobFileEntry> entries);

// `time`: seconds since 1970, at which it begins.
nlohmann::json describe_run(const JobSettings& job, const Environment& environment, double time);

// Versions of the packages that this Python finds in its own folders, by name; nothing is started for it.
nlohmann::json python_packages(const std::string& python, const Environment& environment);

// The folder that the script or program lies in, "." for a module.
std::string folder_of_code(const std::vector<std::string>& command);

}  // namespace muster::launch
