#include "muster/launch/preload/preload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "muster/launch/preload/python_command.h"
#include "muster/launch/settings/wrong.h"

namespace muster::launch {
namespace {

// "package.module": what Python would take for another word is a mistake.
bool is_module_name(std::string_view name) {
  const auto is_other = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
    return !is_letter && !(byte >= '0' && byte <= '9') && byte != '_' && byte != '.' && byte < 0x80;
  };
  return !name.empty() && !name.starts_with('.') && !name.ends_with('.') &&
         name.find("..") == std::string_view::npos && std::ranges::none_of(name, is_other);
}

std::map<std::string, std::string> common_variables_of(const std::vector<ProcessSpec>& processes) {
  auto common = processes.front().environment;
  std::erase_if(common, [&](const auto& variable) {
    return std::ranges::any_of(processes, [&](const ProcessSpec& process) {
      const auto found = process.environment.find(variable.first);
      return found == process.environment.end() || found->second != variable.second;
    });
  });
  return common;
}

}  // namespace

Result<> check_preload(const JobSettings& job) {
  const auto& [modules, origin] = job.preload;
  for (const std::string& module : modules) {
    if (is_python_script(module))
      return wrong(fmt::format("{} {}: name a module, without .py: {}", origin, module,
                               module.substr(0, module.size() - 3)));
    if (!is_module_name(module))
      return wrong(
          fmt::format("{} '{}': name modules as Python does, as in torch,torch._dynamo", origin, module));
  }
  if (modules.empty()) return {};
  if (job.preset.value == "mpi")
    return wrong(
        fmt::format("{} {}: with the preset mpi it is mpirun that starts the ranks, and each imports "
                    "for itself: leave it out",
                    origin, fmt::join(modules, ",")));
  const auto command = parse_python_command(job.argv());
  if (!command)
    return wrong(
        fmt::format("{} {}: modules are imported for scripts and modules of Python, and {}: leave it out",
                    origin, fmt::join(modules, ","), command.error().message));
  return {};
}

void add_preload(LaunchSpec& spec, const JobSettings& job) {
  if (job.preload.value.empty() || spec.processes.empty()) return;
  const Preload preload{.modules = job.preload.value,
                        .origin = job.preload.origin,
                        .environment = common_variables_of(spec.processes)};
  for (ProcessSpec& process : spec.processes) process.preload = preload;
}

}  // namespace muster::launch
