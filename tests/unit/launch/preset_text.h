// Result of a preset as lines that a golden table can hold.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "muster/launch/launch.h"

namespace muster::launch::testing {

using Values = std::map<std::string, std::string, std::less<>>;

// "label: VARIABLE=value ... $ command > log", one line for each process; one for an error.
inline std::vector<std::string> lines_of(const Result<LaunchSpec>& spec) {
  if (!spec) return {"error: " + spec.error().message};
  std::vector<std::string> lines;
  for (const FileSpec& file : spec->files)
    lines.push_back(fmt::format("file {}: {}", file.path, file.contents));
  for (const ProcessSpec& process : spec->processes) {
    std::string line = process.kind == ProcessSpec::Kind::service ? "service " : "";
    line += process.label + ":";
    for (const auto& [name, value] : process.environment) line += fmt::format(" {}={}", name, value);
    line += " $";
    for (const std::string& word : process.arguments) line += " " + word;
    lines.push_back(line + " > " + process.log_name);
  }
  if (spec->waits_for_release) lines.push_back("waits for release");
  return lines;
}

// Settings from their parts, through `preset`: as the launcher goes, but with ports that are given.
inline Result<LaunchSpec> spec_of(const Preset& preset, const PartialSettings& said,
                                  const Environment& environment,
                                  std::vector<std::vector<std::uint16_t>> ports = {}) {
  MUSTER_TRY(const JobSettings job, complete(said));
  MUSTER_TRY_VOID(preset.check(job, environment));
  return preset.spec({.job = job,
                      .environment = environment,
                      .ports = std::move(ports),
                      .run_folder = "/run/job",
                      .log_folder = "/logs"});
}

template <class T>
PartialSettings::Said<T> said(T value, std::string origin) {
  return Setting<T>{std::move(value), std::move(origin)};
}

inline PartialSettings::Said<std::vector<std::string>> command(std::vector<std::string> words) {
  return said(std::move(words), "command line");
}

}  // namespace muster::launch::testing
