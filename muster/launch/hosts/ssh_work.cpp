#include "muster/launch/hosts/ssh_work.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "muster/launch/hosts/agents.h"
#include "muster/launch/preload/preload.h"

namespace muster::launch {
namespace {

Result<SshOptions> ssh_options(const JobSettings& job, const Environment& environment) {
  const std::string variable = environment.get("MUSTER_SSH").value_or("");
  const bool uses_variable = job.ssh.origin == default_origin && !variable.empty();
  const std::string& text = uses_variable ? variable : job.ssh.value;
  auto words = split_words(text);
  if (!words)
    return fail(Code::invalid_argument,
                fmt::format("{} '{}': {}", uses_variable ? "MUSTER_SSH" : job.ssh.origin, text,
                            words.error().message));
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return SshOptions{.words = *std::move(words),
                    .agent = environment.get("MUSTER_AGENT").value_or(""),
                    .own_program = error ? std::string() : program.string()};
}

Result<> check(const JobSettings& job) {
  for (const HostSlots& host : job.hosts.value)
    if (host.name.starts_with('-'))
      return fail(Code::invalid_argument,
                  fmt::format("{}: '{}' is no name of a host", job.hosts.origin, host.name));
  for (const auto* secret : {&job.client_password_file, &job.server_password_file})
    if (secret->value.starts_with("fd:"))
      return fail(Code::invalid_argument,
                  fmt::format("{}: a pipe or a descriptor reaches no other host: put the secret into a file "
                              "of the same name on each",
                              secret->origin));
  return {};
}

// The agent of each host among `agents`; none: this host.
std::vector<std::optional<std::size_t>> places_of(const std::vector<HostSlots>& hosts) {
  std::vector<std::optional<std::size_t>> places;
  std::size_t count = 0;
  for (const HostSlots& host : hosts)
    places.push_back(is_this_host(host.name) ? std::nullopt : std::optional(count++));
  return places;
}

}  // namespace

Result<SshWork> make_ssh_work(const Preset& preset, const PresetInput& input, int keeper_fd,
                              const Clock& clock) {
  const JobSettings& job = input.job;
  MUSTER_TRY_VOID(check(job));
  MUSTER_TRY(const SshOptions options, ssh_options(job, input.environment));
  const auto places = places_of(job.hosts.value);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i]) names.push_back(job.hosts.value[i].name);
  MUSTER_TRY(Agents agents, Agents::connect(names, options, keeper_fd, clock));

  SshWork work;
  const PortsWanted wanted = preset.ports_wanted(job, input.environment);
  const std::size_t hosts_wanting = wanted.count == 0 ? 0 : wanted.only_first ? 1 : places.size();
  std::vector<bool> is_asked(names.size());
  for (std::size_t i = 0; i < hosts_wanting; ++i)
    if (places[i]) is_asked[*places[i]] = true;
  MUSTER_TRY(const auto ports_there, agents.reserve(wanted, is_asked));

  std::vector<std::vector<std::uint16_t>> ports(places.size());
  for (std::size_t i = 0; i < hosts_wanting; ++i) {
    if (places[i]) {
      ports[i] = ports_there[*places[i]];
    } else {
      if (work.ports.reservations.empty()) {
        MUSTER_TRY(work.ports, reserve_ports(wanted, job.reach.value));
      }
      ports[i] = work.ports.numbers();
    }
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    JobSettings job_there = job;
    job_there.self.value = static_cast<std::int64_t>(i);
    const PresetInput input_there{.job = job_there,
                                  .environment = input.environment,
                                  .ports = ports,
                                  .run_folder = places[i] ? agents.run_folder(*places[i]) : input.run_folder,
                                  .log_folder = input.log_folder,
                                  .rank_table = input.rank_table,
                                  .token = input.token};
    MUSTER_TRY(LaunchSpec spec, preset.spec(input_there));
    add_preload(spec, job_there);
    work.hosts.push_back({.name = job.hosts.value[i].name, .spec = std::move(spec)});
    if (places[i]) work.hosts.back().agent = agents.take(*places[i]);
  }
  return work;
}

}  // namespace muster::launch
