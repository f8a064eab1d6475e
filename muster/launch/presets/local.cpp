#include "muster/launch/presets/local.h"

#include <fmt/format.h>

#include "muster/cluster/cluster.h"
#include "muster/net/net.h"

namespace muster::launch {
namespace {

constexpr std::int64_t port_min = 1024;
constexpr std::int64_t port_max = 65535;
constexpr std::int64_t restarts_max = 1'000'000;

tl::unexpected<Error> wrong(std::string message) { return fail(Code::invalid_argument, std::move(message)); }

Result<> check_port(std::int64_t port, const std::string& flag) {
  if (port >= port_min && port <= port_max) return {};
  return wrong(fmt::format("{}: a port is a whole number from {} to {}", flag, port_min, port_max));
}

Result<> check_counts(const LocalFlags& flags) {
  if (!flags.workers) return wrong("say how many workers to start on this host, for example: -n 4");
  if (*flags.workers < 1 || *flags.workers > cluster::worker_num_max)
    return wrong(fmt::format("-n {}: the number of workers is a whole number from 1 to {}", *flags.workers,
                             cluster::worker_num_max));
  if (flags.servers < 0 || flags.servers > cluster::worker_num_max)
    return wrong(fmt::format("--servers {}: the number of servers is a whole number from 0 to {}",
                             flags.servers, cluster::worker_num_max));
  if (flags.node_count < 1 || flags.node_count > cluster::worker_num_max / *flags.workers)
    return wrong(fmt::format("--nnodes {}: one host at least, and at most {} workers in all",
                             flags.node_count, cluster::worker_num_max));
  if (flags.node_rank < 0 || flags.node_rank >= flags.node_count)
    return wrong(fmt::format("--node-rank {}: with --nnodes {} it is a whole number from 0 to {}",
                             flags.node_rank, flags.node_count, flags.node_count - 1));
  if (flags.max_restarts < 0 || flags.max_restarts > restarts_max)
    return wrong(
        fmt::format("--max-restarts {}: how often a process is started again is a whole number from 0 to {}",
                    flags.max_restarts, restarts_max));
  return {};
}

Result<> check(const LocalFlags& flags) {
  MUSTER_TRY_VOID(check_counts(flags));
  if (flags.command.empty())
    return wrong("name what to run, for example: muster run -n 4 train.py --epochs 10");
  if (flags.node_count > 1 && !flags.scheduler)
    return wrong("several hosts need a common scheduler: --scheduler <address of the first host>:<port>");
  if (flags.scheduler && flags.port) return wrong("--scheduler names a port already: leave out --port");
  if (flags.port) MUSTER_TRY_VOID(check_port(*flags.port, fmt::format("--port {}", *flags.port)));
  if (flags.scheduler) {
    const auto named = net::parse_host_port(*flags.scheduler);
    if (!named) return wrong(fmt::format("--scheduler '{}': {}", *flags.scheduler, named.error().message));
    MUSTER_TRY_VOID(check_port(named->port, "--scheduler " + *flags.scheduler));
  }
  return {};
}

}  // namespace

Result<bool> needs_port(const LocalFlags& flags) {
  MUSTER_TRY_VOID(check(flags));
  return !flags.scheduler && !flags.port;
}

namespace {

// OpenMP's threads spin for about 20 ms at each wait unless told otherwise, and keep a core from the thread
// that they wait for when somebody else needs one too. Python's package decides so for itself where nobody
// launched it.
void add_wait_policy(std::map<std::string, std::string>& variables, std::int64_t workers,
                     const Environment& environment) {
  if (environment.get("OMP_WAIT_POLICY") || environment.get("GOMP_SPINCOUNT")) return;
  if (workers > 1)
    variables.emplace("OMP_WAIT_POLICY", "passive");
  else
    variables.emplace("GOMP_SPINCOUNT", "10000");
}

// What makes a job survive the death of a process. The user's own choice of a folder stays.
Result<> add_recovery(std::map<std::string, std::string>& variables, const LocalFlags& flags,
                      const Environment& environment) {
  if (flags.max_restarts == 0) return {};
  if (environment.get("MS_ENABLE_RECOVERY").value_or("1") != "1")
    return wrong(
        fmt::format("--max-restarts {} needs recovery, and MS_ENABLE_RECOVERY={} turns it off: leave one out",
                    flags.max_restarts, *environment.get("MS_ENABLE_RECOVERY")));
  variables.emplace("MS_ENABLE_RECOVERY", "1");
  variables.emplace("MUSTER_MAX_RESTARTS", std::to_string(flags.max_restarts));
  if (environment.get("MS_RECOVERY_PATH").value_or("").empty())
    variables.emplace("MS_RECOVERY_PATH", flags.recovery_folder);
  return {};
}

// Names of files, never what is in them: a command line and an environment can be seen by others.
Result<> add_security(std::map<std::string, std::string>& variables, const LocalFlags& flags) {
  if (!flags.tls_config.empty() && !flags.token_file.empty())
    return wrong("--tls-config and --token-file: a job has certificates or a token, not both");
  const auto add = [&](const char* variable, const std::string& value) {
    if (!value.empty()) variables.emplace(variable, value);
  };
  add("MUSTER_TLS_CONFIG", flags.tls_config);
  add("MUSTER_TLS_CLIENT_PASSWORD_FILE", flags.client_password_file);
  add("MUSTER_TLS_SERVER_PASSWORD_FILE", flags.server_password_file);
  add("MUSTER_TOKEN_FILE", flags.token_file);
  return {};
}

}  // namespace

Result<LaunchSpec> local_spec(const LocalFlags& flags, const Environment& environment,
                              std::uint16_t free_port) {
  MUSTER_TRY_VOID(check(flags));
  net::HostPort scheduler{.host = "127.0.0.1",
                          .port = static_cast<std::uint16_t>(flags.port.value_or(free_port))};
  if (flags.scheduler) scheduler = *net::parse_host_port(*flags.scheduler);

  std::map<std::string, std::string> common = {
      {"MS_SCHED_HOST", scheduler.host},
      {"MS_SCHED_PORT", std::to_string(scheduler.port)},
      {"MS_WORKER_NUM", std::to_string(*flags.workers * flags.node_count)},
      {"MS_SERVER_NUM", std::to_string(flags.servers)},
  };
  // A pipe makes Python keep its lines back: they would be late, and lost when the process is killed.
  if (!environment.get("PYTHONUNBUFFERED")) common.emplace("PYTHONUNBUFFERED", "1");
  add_wait_policy(common, *flags.workers, environment);
  MUSTER_TRY_VOID(add_recovery(common, flags, environment));
  MUSTER_TRY_VOID(add_security(common, flags));

  LaunchSpec spec;
  const auto add = [&](std::string role, std::string_view variable, std::string label, std::string node_id) {
    auto variables = common;
    variables.emplace("MS_ROLE", variable);
    variables.emplace("MS_NODE_ID", std::move(node_id));
    std::string log_name = label + ".log";
    for (char& c : log_name) c = c == ' ' ? '_' : c;
    spec.processes.push_back({.role = std::move(role),
                              .label = std::move(label),
                              .arguments = flags.command,
                              .environment = std::move(variables),
                              .log_name = std::move(log_name)});
  };
  if (flags.node_rank == 0) {
    add("scheduler", "MS_SCHED", "scheduler", "scheduler");
    for (std::int64_t i = 0; i < flags.servers; ++i)
      add("server", "MS_PSERVER", fmt::format("server {}", i), std::to_string(i));
  }
  // Node ids that are the ranks, so that a label says the rank from the first line on.
  for (std::int64_t i = 0; i < *flags.workers; ++i) {
    const std::int64_t rank = flags.node_rank * *flags.workers + i;
    add("worker", "MS_WORKER", fmt::format("worker {}", rank), std::to_string(rank));
  }
  return spec;
}

}  // namespace muster::launch
