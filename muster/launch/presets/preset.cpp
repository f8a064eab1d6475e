#include "muster/launch/presets/preset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "muster/cluster/cluster.h"
#include "muster/launch/presets/checks.h"
#include "muster/launch/presets/families.h"

namespace muster::launch {

std::span<const Preset> presets() {
  static const std::array table = {muster_preset,  mindspore_preset,  ascend_preset,
                                   pytorch_preset, tensorflow_preset, mpi_preset};
  return table;
}

Result<const Preset*> find_preset(const Setting<std::string>& name) {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets()) {
    if (preset.name == name.value) return &preset;
    names.push_back(preset.name);
  }
  const auto meant = nearest_name(name.value, names);
  return fail(Code::invalid_argument,
              fmt::format("{} '{}': there is no such preset{}; there are {}", name.origin, name.value,
                          meant ? fmt::format(", did you mean '{}'", *meant) : "", fmt::join(names, ", ")));
}

PortsWanted no_ports(const JobSettings&, const Environment&) { return {}; }
bool never_meets(const JobSettings&, const Environment&) { return false; }

Result<> check_first_address(const JobSettings& job) {
  if (job.reach.value == Reach::here || job.scheduler) return {};
  const std::string& first = job.hosts.value.front().name;
  if (job.hosts.value.size() > 1 && (first == "localhost" || net::is_loopback(first)))
    return fail(
        Code::invalid_argument,
        fmt::format("{}: the others know the first host by another name than '{}': write that one, or "
                    "--scheduler <its address>:<port>",
                    job.hosts.origin, first));
  if (!first.empty()) return {};
  return fail(Code::invalid_argument,
              "several hosts need a common scheduler: --scheduler <address of the first host>:<port>");
}

PortsWanted port_of_first(const JobSettings& job, const Environment&) {
  if (job.scheduler || job.port || job.reach.value == Reach::each) return {};
  return {.count = 1, .only_first = true};
}

net::HostPort first_address(const PresetInput& input, std::uint16_t default_port) {
  const JobSettings& job = input.job;
  if (job.scheduler) return *net::parse_host_port(job.scheduler->value);
  net::HostPort address{.host = "127.0.0.1", .port = default_port};
  if (job.reach.value != Reach::here) address.host = address_of_host(job.hosts.value.front().name);
  if (job.port)
    address.port = static_cast<std::uint16_t>(job.port->value);
  else if (!input.ports.empty() && !input.ports.front().empty())
    address.port = input.ports.front().front();
  return address;
}

void add_python_variables(std::map<std::string, std::string>& variables, const PresetInput& input) {
  // A pipe makes Python keep its lines back: they would be late, and lost when the process is killed.
  if (!inherited(input, "PYTHONUNBUFFERED")) variables.emplace("PYTHONUNBUFFERED", "1");
  // OpenMP's threads spin for about 20 ms at each wait unless told otherwise, and keep a core from the thread
  // that they wait for when another process needs one too. Python's package decides so for itself where
  // no launcher started it.
  if (inherited(input, "OMP_WAIT_POLICY") || inherited(input, "GOMP_SPINCOUNT")) return;
  if (input.job.own_host().slots == 1) {
    variables.emplace("GOMP_SPINCOUNT", "10000");
    return;
  }
  variables.emplace("OMP_WAIT_POLICY", "passive");
  // Those of numpy's OpenBLAS spin for 50 ms where numpy is imported: 2 to this many cycles.
  if (!inherited(input, "OPENBLAS_THREAD_TIMEOUT")) variables.emplace("OPENBLAS_THREAD_TIMEOUT", "4");
}

void add_own_variables(std::map<std::string, std::string>& variables, const JobSettings& job) {
  for (const auto& [name, setting] : job.environment) variables[name] = setting.value;
}

std::string log_name_of(std::string_view label) {
  std::string name = fmt::format("{}.log", label);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

}  // namespace muster::launch
