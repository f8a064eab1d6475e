#include "muster/launch/presets/families.h"

#include <fmt/format.h>

#include "muster/launch/presets/checks.h"
#include "muster/launch/settings/wrong.h"

namespace muster::launch {
namespace {

constexpr std::uint16_t default_port = 8118;  // where every host has to know it beforehand

// Variables that the user exported for processes started by hand, and that say something else.
Result<> check_variables(const JobSettings& job, const Environment& environment) {
  const auto check = [&](const char* variable, std::string value, std::string what) {
    return check_exported(job, environment, {variable, std::move(value), std::move(what)});
  };
  const std::int64_t workers = job.slot_count();
  MUSTER_TRY_VOID(
      check("MS_WORKER_NUM", std::to_string(workers), fmt::format("a job of {} workers", workers)));
  if (job.servers.origin != default_origin)
    MUSTER_TRY_VOID(check("MS_SERVER_NUM", std::to_string(job.servers.value),
                          fmt::format("{} {}", job.servers.origin, job.servers.value)));
  if (!job.scheduler) return {};
  const auto address = *net::parse_host_port(job.scheduler->value);
  const std::string said = fmt::format("{} {}", job.scheduler->origin, job.scheduler->value);
  MUSTER_TRY_VOID(check("MS_SCHED_HOST", address.host, said));
  return check("MS_SCHED_PORT", std::to_string(address.port), said);
}

Result<> check(const JobSettings& job, const Environment& environment) {
  MUSTER_TRY_VOID(check_uses(job, {.servers = true, .restarts = true, .sets = "MS_ROLE MS_NODE_ID"}));
  if (job.hosts.origin == default_origin && !job.slots)
    return wrong("say how many workers to start on this host, for example: -n 4");
  MUSTER_TRY_VOID(check_first_address(job));
  if (job.max_restarts.value > 0 && environment.get("MS_ENABLE_RECOVERY").value_or("1") != "1")
    return wrong(fmt::format("{} {} needs recovery, and MS_ENABLE_RECOVERY={} turns it off: leave one out",
                             job.max_restarts.origin, job.max_restarts.value,
                             *environment.get("MS_ENABLE_RECOVERY")));
  return check_variables(job, environment);
}

using Variables = std::map<std::string, std::string>;

constexpr const char* token_variable = "MUSTER_TOKEN_FILE";
constexpr const char* run_token_variable = "MUSTER_RUN_TOKEN_FILE";

std::string token_path(const PresetInput& input) { return input.run_folder + "/token"; }

// Names of files, never what is in them: a command line and an environment can be seen by others.
void add_security(Variables& variables, const PresetInput& input) {
  const JobSettings& job = input.job;
  const auto add = [&](const char* variable, const Setting<std::string>& name) {
    if (!name.value.empty()) variables.emplace(variable, name.value);
  };
  add("MUSTER_TLS_CONFIG", job.tls_config);
  add("MUSTER_TLS_CLIENT_PASSWORD_FILE", job.client_password_file);
  add("MUSTER_TLS_SERVER_PASSWORD_FILE", job.server_password_file);
  if (input.token.empty()) add(token_variable, job.token_file);
  if (!input.token.empty())
    variables.emplace(job.token_file.value.empty() ? run_token_variable : token_variable, token_path(input));
  else if (inherited(input, run_token_variable))
    variables.emplace(run_token_variable, "");  // of another job, whose process started this one
}

// All workers look for what the page asks, or none does: it is a call of all of them.
void add_page_requests(Variables& variables, const PresetInput& input) {
  constexpr const char* variable = "MUSTER_PAGE_REQUESTS";
  if (input.job.has_page_actions())
    variables.emplace(variable, input.log_folder);
  else if (inherited(input, variable))
    variables.emplace(variable, "");  // of another job, whose process started this one
}

// What all processes of the job have in common.
Variables common_variables(const PresetInput& input) {
  const net::HostPort scheduler = first_address(input, default_port);
  Variables variables = {
      {"MS_SCHED_HOST", scheduler.host},
      {"MS_SCHED_PORT", std::to_string(scheduler.port)},
      {"MS_WORKER_NUM", std::to_string(input.job.slot_count())},
      {"MS_SERVER_NUM", std::to_string(input.job.servers.value)},
  };
  variables.emplace("MUSTER_RUN_FOLDER", input.log_folder);
  add_page_requests(variables, input);
  add_python_variables(variables, input);
  add_recovery_variables(variables, input);
  add_security(variables, input);
  return variables;
}

Result<LaunchSpec> spec(const PresetInput& input) {
  const JobSettings& job = input.job;
  const Variables common = common_variables(input);
  LaunchSpec result;
  if (!input.token.empty())
    result.files.push_back({.path = token_path(input), .contents = input.token, .is_secret = true});
  const auto add = [&](std::string role, const char* variable, std::string label, std::string node_id) {
    Variables variables = common;
    variables.emplace("MS_ROLE", variable);
    variables.emplace("MS_NODE_ID", std::move(node_id));
    add_own_variables(variables, job);
    result.processes.push_back({.role = std::move(role),
                                .label = label,
                                .arguments = job.argv(),
                                .environment = std::move(variables),
                                .log_name = log_name_of(label)});
  };
  if (job.self.value == 0) add("scheduler", "MS_SCHED", "scheduler", "scheduler");
  // Dealt to the hosts: each has a part of the rows, and two servers with the same rows
  // (MUSTER_SERVER_COPIES), whose numbers follow each other, are not lost with one host.
  const auto host_count = static_cast<std::int64_t>(job.hosts.value.size());
  for (std::int64_t i = job.self.value; i < job.servers.value; i += host_count)
    add("server", "MS_PSERVER", fmt::format("server {}", i), std::to_string(i));
  // Node ids that are the ranks, so that a label says the rank from the first line on.
  for (std::int64_t i = 0; i < job.own_host().slots; ++i) {
    const std::int64_t rank = job.first_slot() + i;
    add("worker", "MS_WORKER", fmt::format("worker {}", rank), std::to_string(rank));
  }
  return result;
}

// The same, with what processes find under msrun, and scripts read: os.environ["RANK_ID"]. The scheduler and
// servers run the script, too, and have those of the first worker.
Result<LaunchSpec> spec_as_msrun(const PresetInput& input) {
  MUSTER_TRY(LaunchSpec result, spec(input));
  std::int64_t local_rank = 0;
  for (ProcessSpec& process : result.processes) {
    const bool is_worker = process.role == "worker";
    const std::int64_t rank = is_worker ? input.job.first_slot() + local_rank : 0;
    process.environment.emplace("RANK_ID", std::to_string(rank));
    process.environment.emplace("RANK_SIZE", std::to_string(input.job.slot_count()));
    process.environment.emplace("DEVICE_ID", std::to_string(is_worker ? local_rank++ : 0));
  }
  return result;
}

bool always(const JobSettings&, const Environment&) { return true; }

constexpr std::string_view openness =
    "any process that reaches the scheduler's port can take part in the job";

}  // namespace

const Preset muster_preset = {
    .name = "muster",
    .summary = "scheduler, workers and servers by MS_* variables",
    .check = check,
    .ports_wanted = port_of_first,
    .needs_rendezvous = never_meets,
    .spec = spec,
    .needs_secret = always,
    .openness = openness,
};

const Preset mindspore_preset = {
    .name = "mindspore",
    .summary = "the same, for scripts that import mindspore",
    .check = check,
    .ports_wanted = port_of_first,
    .needs_rendezvous = never_meets,
    .spec = spec_as_msrun,
    .needs_secret = always,
    .openness = openness,
};

}  // namespace muster::launch
