#include "muster/launch/settings/job_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "muster/cluster/cluster.h"
#include "muster/launch/settings/wrong.h"
#include "muster/net/net.h"

namespace muster::launch {
namespace {

constexpr std::int64_t slots_max = cluster::worker_num_max;
constexpr std::int64_t restarts_max = 1'000'000;
constexpr std::int64_t port_min = 1024;
constexpr std::int64_t port_max = 65535;

constexpr auto fields = std::make_tuple(
    &PartialSettings::preset, &PartialSettings::command, &PartialSettings::hosts,
    &PartialSettings::host_count, &PartialSettings::self, &PartialSettings::reach, &PartialSettings::slots,
    &PartialSettings::roles, &PartialSettings::servers, &PartialSettings::scheduler, &PartialSettings::port,
    &PartialSettings::max_restarts, &PartialSettings::restart, &PartialSettings::style,
    &PartialSettings::rank_table, &PartialSettings::ssh, &PartialSettings::log_folder,
    &PartialSettings::recovery_folder, &PartialSettings::metrics_port, &PartialSettings::dashboard,
    &PartialSettings::tail, &PartialSettings::preload, &PartialSettings::tls_config,
    &PartialSettings::client_password_file, &PartialSettings::server_password_file,
    &PartialSettings::token_file, &PartialSettings::is_open);

Result<> check_range(const std::optional<Setting<std::int64_t>>& said, std::string_view what,
                     std::int64_t least, std::int64_t most) {
  if (!said || (said->value >= least && said->value <= most)) return {};
  return wrong(
      fmt::format("{} {}: {} is a whole number from {} to {}", said->origin, said->value, what, least, most));
}

Result<> check_numbers(const PartialSettings& said) {
  MUSTER_TRY_VOID(check_range(said.slots, "the number of workers", 1, slots_max));
  MUSTER_TRY_VOID(check_range(said.servers, "the number of servers", 0, slots_max));
  MUSTER_TRY_VOID(check_range(said.host_count, "the number of hosts", 1, slots_max));
  MUSTER_TRY_VOID(check_range(said.max_restarts, "how often a process is started again", 0, restarts_max));
  return check_range(said.port, "a port", port_min, port_max);
}

Result<> check_scheduler(const PartialSettings& said) {
  if (!said.scheduler) return {};
  if (said.port)
    return wrong(
        fmt::format("{} names a port already: leave out {}", said.scheduler->origin, said.port->origin));
  const auto named = net::parse_host_port(said.scheduler->value);
  if (!named)
    return wrong(
        fmt::format("{} '{}': {}", said.scheduler->origin, said.scheduler->value, named.error().message));
  if (named->port < port_min)
    return wrong(fmt::format("{} {}: a port is a whole number from {} to {}", said.scheduler->origin,
                             said.scheduler->value, port_min, port_max));
  return {};
}

Result<> check_restart(const PartialSettings& said) {
  if (!said.restart) return {};
  const std::string& way = said.restart->value;
  if (way != "process" && way != "group")
    return wrong(
        fmt::format("{} '{}': write process, and who died is started again, or group, and all processes are",
                    said.restart->origin, way));
  if (said.max_restarts && said.max_restarts->value > 0) return {};
  return wrong(fmt::format("{} {}: say how often, for example: --max-restarts 3", said.restart->origin, way));
}

// A part of a host's processes, where something else starts the others: Kubernetes has a container for each.
Result<> check_roles(const PartialSettings& said) {
  constexpr auto known = std::to_array<std::string_view>({"scheduler", "worker", "server", "ps", "chief"});
  if (!said.roles) return {};
  for (const std::string& role : said.roles->value)
    if (std::find(known.begin(), known.end(), role) == known.end())
      return wrong(fmt::format("{} '{}': there is no such role; there are {}", said.roles->origin, role,
                               fmt::join(known, ", ")));
  return {};
}

Result<> check_names(const Setting<std::vector<HostSlots>>& hosts) {
  std::set<std::string> seen;
  for (const HostSlots& host : hosts.value)
    if (!host.name.empty() && !seen.insert(host.name).second)
      return wrong(fmt::format("{}: host '{}' stands there twice: give it more slots, as in {}:4",
                               hosts.origin, host.name, host.name));
  return {};
}

// All hosts with their slots, whether or not they have names.
Result<Setting<std::vector<HostSlots>>> complete_hosts(const PartialSettings& said) {
  Setting<std::vector<HostSlots>> hosts;
  if (said.hosts) {
    hosts = *said.hosts;
    if (hosts.value.empty()) return wrong(fmt::format("{}: it names no host", hosts.origin));
    if (said.host_count && said.host_count->value != static_cast<std::int64_t>(hosts.value.size()))
      return wrong(fmt::format("{} {}, but {} names {} hosts", said.host_count->origin,
                               said.host_count->value, hosts.origin, hosts.value.size()));
    MUSTER_TRY_VOID(check_names(hosts));
  } else {
    const std::int64_t count = said.host_count ? said.host_count->value : 1;
    hosts.value.resize(static_cast<std::size_t>(count));
    if (said.host_count) hosts.origin = said.host_count->origin;
    if (said.scheduler && count > 1)
      hosts.value.front().name = net::parse_host_port(said.scheduler->value)->host;
  }
  std::int64_t all = 0;
  for (HostSlots& host : hosts.value) {
    if (host.slots == 0) host.slots = said.slots ? said.slots->value : 1;
    if (host.slots < 1 || host.slots > slots_max)
      return wrong(fmt::format("{}: {} slots on host '{}': a whole number from 1 to {}", hosts.origin,
                               host.slots, host.name, slots_max));
    all += host.slots;
  }
  if (all > slots_max)
    return wrong(fmt::format("{}: {} workers on {} hosts: at most {} in all", hosts.origin, all,
                             hosts.value.size(), slots_max));
  return hosts;
}

template <class T>
void take(Setting<T>& to, const std::optional<Setting<T>>& said) {
  if (said) to = *said;
}

}  // namespace

PartialSettings merged(PartialSettings strong, const PartialSettings& weak) {
  const auto take_missing = [&](auto... field) {
    ((strong.*field = strong.*field ? strong.*field : weak.*field), ...);
  };
  std::apply(take_missing, fields);
  strong.environment.insert(weak.environment.begin(), weak.environment.end());
  return strong;
}

std::string_view address_of_host(std::string_view name) { return name.substr(name.find('@') + 1); }

bool is_python_script(std::string_view word) { return word.size() > 3 && word.ends_with(".py"); }

bool needs_python(const std::vector<std::string>& command) {
  return !command.empty() && (command.front() == module_flag || is_python_script(command.front()));
}

std::vector<std::string> JobSettings::argv() const {
  std::vector<std::string> words = command.value;
  if (needs_python(words)) words.insert(words.begin(), python);
  return words;
}

std::int64_t JobSettings::slot_count() const {
  std::int64_t count = 0;
  for (const HostSlots& host : hosts.value) count += host.slots;
  return count;
}

std::int64_t JobSettings::first_slot() const {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < self.value; ++i) count += hosts.value[static_cast<std::size_t>(i)].slots;
  return count;
}

Result<JobSettings> complete(const PartialSettings& said) {
  MUSTER_TRY_VOID(check_numbers(said));
  MUSTER_TRY_VOID(check_scheduler(said));
  MUSTER_TRY_VOID(check_roles(said));
  MUSTER_TRY_VOID(check_restart(said));
  if (!said.command || said.command->value.empty())
    return wrong("name what to run, for example: muster run -n 4 train.py --epochs 10");

  JobSettings job;
  MUSTER_TRY(job.hosts, complete_hosts(said));
  const auto host_count = static_cast<std::int64_t>(job.hosts.value.size());
  MUSTER_TRY_VOID(check_range(said.self,
                              fmt::format("with {} host{} it", host_count, host_count == 1 ? "" : "s"), 0,
                              host_count - 1));
  job.reach.value = host_count > 1 ? Reach::each : Reach::here;
  take(job.reach, said.reach);
  if (job.reach.value == Reach::each && host_count == 1) job.reach.value = Reach::here;
  if (job.reach.value == Reach::ssh && said.self)
    return wrong(
        fmt::format("{} says which host this is, but this launcher starts all of {} by ssh: leave one out",
                    said.self->origin, job.hosts.origin));
  job.slots = said.slots;
  job.scheduler = said.scheduler;
  job.port = said.port;
  take(job.preset, said.preset);
  take(job.command, said.command);
  take(job.self, said.self);
  take(job.servers, said.servers);
  take(job.roles, said.roles);
  take(job.max_restarts, said.max_restarts);
  take(job.restart, said.restart);
  take(job.style, said.style);
  take(job.preload, said.preload);
  take(job.rank_table, said.rank_table);
  take(job.ssh, said.ssh);
  take(job.log_folder, said.log_folder);
  take(job.metrics_port, said.metrics_port);
  take(job.dashboard, said.dashboard);
  take(job.recovery_folder, said.recovery_folder);
  take(job.tail, said.tail);
  take(job.tls_config, said.tls_config);
  take(job.client_password_file, said.client_password_file);
  take(job.server_password_file, said.server_password_file);
  take(job.token_file, said.token_file);
  take(job.is_open, said.is_open);
  job.environment = said.environment;
  for (const std::int64_t rank : job.tail.value)
    if (rank < 0 || rank >= job.slot_count())
      return wrong(fmt::format("{} {}: the ranks of this job are 0 to {}", job.tail.origin, rank,
                               job.slot_count() - 1));
  if (!job.tls_config.value.empty() && !job.token_file.value.empty())
    return wrong(fmt::format("{} and {}: a job has certificates or a token, not both", job.tls_config.origin,
                             job.token_file.origin));
  return job;
}

Result<> check_agreement(const PartialSettings& asked, const PartialSettings& platform) {
  for (const auto field : {&PartialSettings::self, &PartialSettings::host_count}) {
    const auto& ours = asked.*field;
    const auto& theirs = platform.*field;
    if (ours && theirs && ours->value != theirs->value)
      return wrong(fmt::format("{} {} contradicts {}={}: leave one out", ours->origin, ours->value,
                               theirs->origin, theirs->value));
  }
  if (asked.hosts && platform.hosts)
    return wrong(fmt::format("{} names the hosts, and so does {}: leave one out", asked.hosts->origin,
                             platform.hosts->origin));
  return {};
}

}  // namespace muster::launch
