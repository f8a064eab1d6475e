// The job file: all settings of a job in TOML (docs/formats/job.md). What `muster run --dry-run` prints is
// one.
#pragma once

#include <string>
#include <string_view>

#include "muster/launch/settings/job_settings.h"

namespace muster::launch {

inline constexpr std::size_t job_file_bytes_max = 1 << 20;

struct JobFileName {
  std::string name;    // as the user wrote it: stands in errors and origins
  std::string folder;  // absolute; relative paths in the file start there
};

// Errors name the file, the line and the key; a key that does not exist is one, with the name it was likely
// meant to have.
Result<PartialSettings> parse_job_file(std::string_view text, const JobFileName& file);

enum class WithOrigins { no, yes };  // "slots = 4  # -n"

std::string job_file_text(const JobSettings& job, WithOrigins origins);

}  // namespace muster::launch
