#include "muster/launch/runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "muster/cluster/cluster.h"
#include "muster/launch/dashboard/job_server.h"
#include "muster/launch/hosts/agent_messages.h"
#include "muster/launch/hosts/gathering.h"
#include "muster/launch/hosts/ssh_work.h"
#include "muster/launch/keeper.h"
#include "muster/launch/otlp.h"
#include "muster/launch/ports.h"
#include "muster/launch/preload/preload.h"
#include "muster/launch/presets/preset.h"
#include "muster/launch/protection.h"
#include "muster/launch/rank_table.h"
#include "muster/launch/run_folder.h"
#include "muster/launch/runs/run_record.h"
#include "muster/launch/secret_file.h"
#include "muster/launch/supervisor.h"

namespace muster::launch {
namespace {

constexpr int exit_code_refused = 2;  // as for a command line that cannot be used

int refuse(const Error& error, int exit_code = exit_code_refused) {
  fmt::print(stderr, "muster run: {}\n", error.message);
  return exit_code;
}

// Files of secrets as every process can read them: those of the settings, or of this process's own variables.
Result<> hand_on_secrets(JobSettings& job, const Environment& environment) {
  struct Secret {
    Setting<std::string>& name;
    const char* variable;
    const char* what;
  };
  for (const Secret& secret :
       {Secret{job.client_password_file, "MUSTER_TLS_CLIENT_PASSWORD_FILE", "a password"},
        Secret{job.server_password_file, "MUSTER_TLS_SERVER_PASSWORD_FILE", "a password"},
        Secret{job.token_file, "MUSTER_TOKEN_FILE", "a token"}}) {
    if (secret.name.value.empty() && !job.environment.contains(secret.variable))
      secret.name = {environment.get(secret.variable).value_or(""), secret.variable};
    if (secret.name.value.empty()) continue;
    auto name = handed_on(secret.name.value, secret.what);
    if (!name)
      return fail(name.error().code,
                  fmt::format("{} {}: {}", secret.name.origin, secret.name.value, name.error().message));
    secret.name.value = *std::move(name);
  }
  return {};
}

// The configuration's name in a folder that may be another than the processes'.
Result<> find_tls_config(JobSettings& job, const Environment& environment) {
  constexpr const char* variable = "MUSTER_TLS_CONFIG";
  if (job.tls_config.value.empty() && !job.environment.contains(variable))
    job.tls_config = {environment.get(variable).value_or(""), variable};
  if (job.tls_config.value.empty()) return {};
  std::error_code error;
  if (!std::filesystem::exists(job.tls_config.value, error))
    return fail(Code::not_found,
                fmt::format("{} {}: there is no such file", job.tls_config.origin, job.tls_config.value));
  job.tls_config.value = std::filesystem::absolute(job.tls_config.value).string();
  return {};
}

// Before the folder is made, its name is not known to the second.
std::string absolute_logs(const JobSettings& job) {
  const std::string& name = job.log_folder.value;
  return std::filesystem::absolute(name.empty() ? "muster-logs/<time>" : name).string();
}

Result<std::string> rank_table_text_of(const JobSettings& job) {
  if (job.rank_table.value.empty()) return std::string();
  MUSTER_TRY(net::SmallFile file, net::read_small_file(job.rank_table.value, rank_table_bytes_max));
  return std::move(file.text);
}

// One host's part of a job: what it reserves stays reserved until the work has ended.
struct Work {
  std::string token;
  ReservedPorts ports;
  Gathering gathered;
  LaunchSpec spec;
};

// Where something else starts the rest: see `roles` of the settings.
void keep_roles(LaunchSpec& spec, const std::vector<std::string>& roles) {
  if (roles.empty()) return;
  std::erase_if(spec.processes, [&](const ProcessSpec& process) {
    return std::find(roles.begin(), roles.end(), process.role) == roles.end();
  });
}

// What watches over work: without it nothing is started, and there is no rendezvous: a rehearsal.
struct Kept {
  int keeper_fd;
  const Clock& clock;
};

Result<Work> make_work(const JobSettings& job, const Environment& environment, const std::string& run_folder,
                       const std::optional<Kept>& kept) {
  MUSTER_TRY(const Preset* preset, find_preset(job.preset));
  const PortsWanted wanted = preset->ports_wanted(job, environment);
  Work work;
  if (job.self.value == 0 || !wanted.only_first) {
    MUSTER_TRY(work.ports, reserve_ports(wanted, job.reach.value));
  }
  MUSTER_TRY(std::string table, rank_table_text_of(job));
  PresetInput input{.job = job,
                    .environment = environment,
                    .ports = {work.ports.numbers()},
                    .run_folder = run_folder,
                    .log_folder = absolute_logs(job),
                    .rank_table = std::move(table)};
  MUSTER_TRY(work.token, token_to_hand_out(*preset, job, environment));
  input.token = work.token;
  if (kept) {
    MUSTER_TRY(work.gathered, gather(*preset, job, environment,
                                     {.clock = kept->clock,
                                      .ports = work.ports.numbers(),
                                      .run_folder = run_folder,
                                      .keeper_fd = kept->keeper_fd}));
  }
  work.gathered.tell(input);
  MUSTER_TRY(work.spec, preset->spec(input));
  keep_roles(work.spec, job.roles.value);
  add_preload(work.spec, job);
  return work;
}

std::string announcement(const JobSettings& job, const LaunchSpec& spec) {
  std::string text = fmt::format("muster: starting {} process{}", spec.processes.size(),
                                 spec.processes.size() == 1 ? "" : "es");
  if (job.preset.value != "muster")
    text += fmt::format(" (preset {}, {})", job.preset.value, job.preset.origin);
  const auto& variables = spec.processes.front().environment;
  if (variables.contains("MS_SCHED_HOST"))
    text += fmt::format(", scheduler at {}:{}", variables.at("MS_SCHED_HOST"), variables.at("MS_SCHED_PORT"));
  if (spec.processes.front().preload)
    text += fmt::format(", {} imported once for all", fmt::join(job.preload.value, ","));
  text += fmt::format(", logs in {}", job.log_folder.value);
  if (spec.waits_for_release) text += "; this host serves the first one, where the output of the job is";
  return text;
}

std::string recovery_folder(const JobSettings& job, const Environment& environment) {
  if (!job.recovery_folder.value.empty()) return job.recovery_folder.value;
  const std::string own = environment.get("MS_RECOVERY_PATH").value_or("");
  return own.empty() ? job.log_folder.value + "/recovery" : own;
}

bool wants_colors(const Environment& environment) {
  return environment.get("NO_COLOR").value_or("").empty() && environment.get("TERM") != "dumb";
}

// One of Muster's, where a script of MindSpore's runs under Muster; MindSpore's own answers nothing.
bool has_scheduler(const JobSettings& job) {
  return job.preset.value == "muster" || job.preset.value == "mindspore";
}

SupervisorOptions supervisor_options(const JobSettings& job, const Environment& environment,
                                     const std::string& run_folder, const Kept& kept) {
  return {.clock = kept.clock,
          .log_folder = job.log_folder.value,
          .run_folder = run_folder,
          .restarts_max = static_cast<std::size_t>(job.max_restarts.value),
          .recovery_folder = recovery_folder(job, environment),
          .restarts_group = job.restarts_group(),
          .tail = job.tail.value,
          .is_colored = wants_colors(environment),
          .asks_scheduler = has_scheduler(job),
          .keeper_fd = kept.keeper_fd};
}

// What shows the job over HTTP while it runs.
using Servers = std::vector<std::unique_ptr<JobServer>>;

// What other hosts reach is encrypted as the job is, where that has certificates: browsers know no tokens.
Result<> encrypt(JobServer& server, const JobSettings& job, const Environment& environment) {
  if (server.is_local()) return {};
  MUSTER_TRY(auto security, find_security(job, environment));
  if (security != nullptr && security->uses_certificates()) server.encrypt(std::move(security));
  return {};
}

Result<> open_server(Servers& servers, const JobSettings& job, const Environment& environment,
                     JobServer::Shows shows) {
  const bool is_page = shows == JobServer::Shows::page;
  const auto& [where, origin] = is_page ? job.dashboard : job.metrics_port;
  if (where.empty()) return {};
  if (!has_scheduler(job))
    return fail(Code::invalid_argument,
                fmt::format("{} {}: a job of preset {} has no scheduler whose numbers could be served; its "
                            "folder has its logs and what became of it (muster runs, and muster dashboard "
                            "FOLDER afterwards){}",
                            origin, where, job.preset.value,
                            job.preset.value == "pytorch"
                                ? ", and muster status shows ranks of PyTorch over Muster while they run"
                                : ""));
  auto server = JobServer::open(shows, where);
  if (!server)
    return fail(server.error().code, fmt::format("{} {}: {}", origin, where, server.error().message));
  MUSTER_TRY_VOID(encrypt(*server, job, environment));
  if (is_page) {
    server->set_logs(job.log_folder.value, true);
    MUSTER_TRY_VOID(server->allow_actions({.run_folder = job.log_folder.value,
                                           .reaches_workers = job.has_page_actions(),
                                           .restarts = job.max_restarts.value > 0 && !job.restarts_group(),
                                           .worker_num = static_cast<std::uint32_t>(job.slot_count())}));
  }
  fmt::print(stderr, "muster: {} at {}\n", is_page ? "page of the job" : "numbers of the job", server->url());
  servers.push_back(std::make_unique<JobServer>(*std::move(server)));
  return {};
}

Result<Servers> open_servers(const JobSettings& job, const Environment& environment) {
  Servers servers;
  for (const auto shows : {JobServer::Shows::numbers, JobServer::Shows::page})
    MUSTER_TRY_VOID(open_server(servers, job, environment, shows));
  if (!has_scheduler(job) || job.self.value != 0) return servers;
  if (job.dashboard.value.empty()) {
    servers.push_back(std::make_unique<JobServer>(JobServer::recorder()));
    servers.back()->set_logs(job.log_folder.value, true);
  }
  // Platforms set these variables for all programs of a host: none of them keeps a job from running.
  const auto target = find_otlp_target(environment);
  if (!target)
    fmt::print(stderr, "muster warning: no numbers are sent by OpenTelemetry: {}\n", target.error().message);
  else if (*target)
    servers.back()->export_numbers(**target);
  return servers;
}

// What shows the job and what keeps its story, as long as it runs.
struct Watched {
  Servers servers;
  std::unique_ptr<RunRecord> record;  // null: there is none

  void add_to(SupervisorOptions& options) const {
    for (const auto& server : servers) options.servers.push_back(server.get());
    options.record = record.get();
  }
};

// The first host's folder tells of the job; a job is not refused because a disk does not take that.
Result<Watched> open_watched(const JobSettings& job, const Environment& environment, const Clock& clock) {
  Watched watched;
  if (job.self.value == 0) {
    // Where others start the rest of this job, as in pods, they may share its folder.
    if (job.roles.value.empty()) MUSTER_TRY_VOID(wait_until_free(job.log_folder.value, clock));
    auto record = RunRecord::begin(job, environment, clock);
    if (record)
      watched.record = *std::move(record);
    else
      fmt::print(stderr, "muster warning: `muster runs` will not know of this run: {}\n",
                 record.error().message);
  }
  auto servers = open_servers(job, environment);
  if (!servers) {
    if (watched.record) watched.record->end(exit_code_refused, 0);
    return fail(servers.error());
  }
  watched.servers = *std::move(servers);
  return watched;
}

// The hosts that this launcher reaches by ssh.
int run_by_ssh(const JobSettings& job, const Environment& environment, const std::string& run_folder,
               const Kept& kept) {
  const auto preset = find_preset(job.preset);
  const auto table = rank_table_text_of(job);
  if (!table) return refuse(table.error());
  const auto token = token_to_hand_out(**preset, job, environment);
  if (!token) return refuse(token.error());
  auto work = make_run_folder(run_folder).and_then([&] {
    return make_ssh_work(**preset,
                         {.job = job,
                          .environment = environment,
                          .run_folder = run_folder,
                          .log_folder = absolute_logs(job),
                          .rank_table = *table,
                          .token = *token},
                         kept.keeper_fd, kept.clock);
  });
  if (!work) return refuse(work.error());
  fmt::print(stderr, "muster: starting processes on {} hosts, logs in {}\n", work->hosts.size(),
             job.log_folder.value);
  const auto watched = open_watched(job, environment, kept.clock);
  if (!watched) return refuse(watched.error());
  SupervisorOptions options = supervisor_options(job, environment, run_folder, kept);
  options.token = *token;
  watched->add_to(options);
  return supervise(std::move(work->hosts), options);
}

// In the child that `keep` made: what is slow may be interrupted.
int run_work(const JobSettings& job, const Environment& environment, const std::string& run_folder,
             const Kept& kept) {
  if (job.reach.value == Reach::ssh) return run_by_ssh(job, environment, run_folder, kept);
  const auto work =
      make_run_folder(run_folder).and_then([&] { return make_work(job, environment, run_folder, kept); });
  if (!work)
    return refuse(work.error(),
                  work.error().code == Code::timeout ? cluster::exit_code_timeout : exit_code_refused);
  if (work->spec.processes.empty() && !job.roles.value.empty()) {
    fmt::print(stderr, "muster: {} {}: none of them runs on this host\n", job.roles.origin,
               fmt::join(job.roles.value, ","));
    remove_run_folder(run_folder);
    return 0;
  }
  fmt::print(stderr, "{}\n", announcement(job, work->spec));
  const auto watched = open_watched(job, environment, kept.clock);
  if (!watched) return refuse(watched.error());
  SupervisorOptions options = supervisor_options(job, environment, run_folder, kept);
  options.token = work->token;
  watched->add_to(options);
  options.lease = work->gathered.rendezvous.get();
  return supervise(work->spec, options);
}

// As a shell would take it.
std::string quoted_word(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

Result<JobSettings> prepared(JobSettings job, const Environment& environment) {
  MUSTER_TRY(const Preset* preset, find_preset(job.preset));
  MUSTER_TRY_VOID(preset->check(job, environment));
  MUSTER_TRY_VOID(check_preload(job));
  MUSTER_TRY_VOID(find_tls_config(job, environment));
  MUSTER_TRY_VOID(hand_on_secrets(job, environment));
  MUSTER_TRY_VOID(check_protection(*preset, job, environment));
  return job;
}

int run_job(const JobSettings& job, const Environment& environment, const Clock& clock) {
  const std::string run_folder = new_run_folder(environment);
  const auto preset = find_preset(job.preset);
  // Its other hosts do not wait longer for one that stands still.
  std::optional<Duration> stopped_max;
  if (job.reach.value == Reach::ssh) stopped_max = agent::lease_duration + stopped_margin;
  if (preset && (*preset)->needs_rendezvous(job, environment))
    stopped_max = RendezvousTimes{}.silence_max + stopped_margin;
  return keep(
      [&](int keeper_fd) {
        return run_work(job, environment, run_folder, {keeper_fd, clock});
      },
      {.clock = clock, .run_folder = run_folder, .stopped_max = stopped_max});
}

Result<std::string> describe_job(const JobSettings& job, const Environment& environment,
                                 WithOrigins origins) {
  MUSTER_TRY(const Work work, make_work(job, environment, run_folder_like(environment), std::nullopt));
  std::string text = job_file_text(job, origins);
  if (job.hosts.value.size() > 1)
    text += fmt::format("\n# On host {} of {}:\n", job.self.value, job.hosts.value.size());
  else
    text += '\n';
  for (const ProcessSpec& process : work.spec.processes) {
    text += fmt::format("# {}:", process.label);
    for (const auto& [name, value] : process.environment)
      text += fmt::format(" {}={}", name, quoted_word(value));
    for (const std::string& word : process.arguments) text += ' ' + quoted_word(word);
    text += '\n';
  }
  return text;
}

}  // namespace muster::launch
