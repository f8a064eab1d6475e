#include "muster/launch/hosts/gathering.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <filesystem>

#include "muster/launch/hosts/programs.h"
#include "muster/launch/protection.h"

namespace muster::launch {
namespace {

Result<RendezvousTimes> times_of(const Environment& environment) {
  RendezvousTimes times;
  const std::string text = environment.get("MS_TOPO_TIMEOUT").value_or("");
  if (text.empty()) return times;
  constexpr std::int64_t seconds_max = 30LL * 24 * 3600;
  std::int64_t seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc{} || parsed != end || seconds < 1 || seconds > seconds_max)
    return fail(Code::invalid_argument,
                fmt::format("MS_TOPO_TIMEOUT='{}': seconds, a whole number from 1 to {}", text, seconds_max));
  times.limit = std::chrono::seconds(seconds);
  return times;
}

Result<> meet(Gathering& gathered, HostReport own, const Preset& preset, const JobSettings& job,
              const Environment& environment, const GatheringOptions& options) {
  MUSTER_TRY(auto security, find_security(job, environment));
  MUSTER_TRY(const RendezvousTimes times, times_of(environment));
  MUSTER_TRY(
      gathered.rendezvous,
      Rendezvous::open({.clock = options.clock,
                        .hosts = static_cast<std::int64_t>(job.hosts.value.size()),
                        .preset = std::string(preset.name),
                        .openness = std::string(preset.openness),
                        .own = std::move(own),
                        .place = rendezvous_place(job),
                        .bind = environment.get("MUSTER_BIND").value_or(""),
                        .security = std::move(security),
                        .times = times,
                        .say = [](const std::string& line) { fmt::print(stderr, "muster: {}\n", line); }}));
  std::vector<int> abort_fds;
  if (options.keeper_fd >= 0) abort_fds.push_back(options.keeper_fd);
  MUSTER_TRY(gathered.hosts, gathered.rendezvous->wait(abort_fds));
  return {};
}

}  // namespace

net::HostPort rendezvous_place(const JobSettings& job) {
  if (job.scheduler) return *net::parse_host_port(job.scheduler->value);
  return {.host = job.hosts.value.front().name,
          .port = job.port ? static_cast<std::uint16_t>(job.port->value) : rendezvous_port_default};
}

Result<Gathering> gather(const Preset& preset, const JobSettings& job, const Environment& environment,
                         const GatheringOptions& options) {
  Gathering gathered;
  if (preset.programs != nullptr) {
    MUSTER_TRY(gathered.programs, find_programs(preset.programs(job), environment));
  }
  HostReport own{.index = job.self.value, .ports = options.ports};
  if (preset.needs_host_key != nullptr && preset.needs_host_key(job, environment)) {
    MUSTER_TRY(gathered.user, user_name());
    MUSTER_TRY_VOID(make_sshd_folder());
    MUSTER_TRY(own.host_key,
               make_host_key(options.run_folder, gathered.programs.at("ssh-keygen"), options.clock));
  }
  if (preset.needs_rendezvous(job, environment))
    MUSTER_TRY_VOID(meet(gathered, std::move(own), preset, job, environment, options));
  return gathered;
}

void Gathering::tell(PresetInput& input) const {
  input.programs = programs;
  input.user = user;
  input.is_root = ::geteuid() == 0;
  std::error_code error;
  input.own_program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (hosts.empty()) return;
  input.ports.clear();
  for (const HostReport& host : hosts) {
    input.ports.push_back(host.ports);
    input.addresses.push_back(host.address);
    input.interfaces.push_back(host.interface);
    input.host_keys.push_back(host.host_key);
  }
  input.first_sources = hosts.front().sources;
  const std::string& own = hosts[static_cast<std::size_t>(input.job.self.value)].address;
  if (net::is_local(own)) input.own_address = own;
}

}  // namespace muster::launch
