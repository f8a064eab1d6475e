#include "run_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "muster/net/net.h"

namespace muster::app {
namespace {

using launch::PartialSettings;
using launch::Setting;

constexpr const char* footer =
    "\nAfter the options come the script or program and its own arguments, which are passed on as they are:\n"
    "  muster run -n 4 train.py --epochs 10\n"
    "  muster run -n 4 -m package.train --epochs 10\n"
    "  muster run -n 2 ./train\n"
    "A script ends in .py; it, or a module behind -m, is run by the Python of the environment that `muster` "
    "was installed into.\n\n"
    "On several hosts, run the same line on each, with its own rank:\n"
    "  muster run -n 4 --nnodes 2 --node-rank 0 --scheduler 10.0.0.1:8118 --token-file token train.py\n"
    "  muster run -n 4 --nnodes 2 --node-rank 1 --scheduler 10.0.0.1:8118 --token-file token train.py\n\n"
    "Every line of output is prefixed with its process. When a process fails, the others are stopped, its "
    "last\n"
    "lines are repeated and its exit code is the job's. Ctrl-C ends the job; a second one kills it.\n\n"
    "With --max-restarts a process that dies or fails is started again instead, at once the first time and\n"
    "after 1, 2, 4 ... 30 s when the job gets no further. It sets MS_ENABLE_RECOVERY=1, and "
    "MS_RECOVERY_PATH\n"
    "to <log folder>/recovery unless you set it. The job ends when one process has the same failure three\n"
    "times without a newer recovery point in between, or no restart left. With --restart group all "
    "processes\n"
    "are ended and started again, for scripts of pytorch, tensorflow and ascend that cannot recover.";

tl::unexpected<Error> wrong(std::string message) { return fail(Code::invalid_argument, std::move(message)); }

template <class T>
void say(PartialSettings::Said<T>& setting, const std::optional<T>& flag, const char* name) {
  if (flag) setting = Setting<T>{*flag, name};
}

Result<> read_hosts(PartialSettings& said, const RunFlags& flags) {
  if (flags.hosts && flags.hostfile)
    return wrong("--hosts and --hostfile both name the hosts: leave one out");
  const char* const name = flags.hosts ? "--hosts" : "--hostfile";
  if (flags.hosts) {
    auto hosts = launch::parse_hosts(*flags.hosts);
    if (!hosts) return wrong(fmt::format("--hosts {}: {}", *flags.hosts, hosts.error().message));
    said.hosts = {*std::move(hosts), name};
  } else if (flags.hostfile) {
    auto file = net::read_small_file(*flags.hostfile, launch::hostfile_bytes_max);
    if (!file)
      return fail(file.error().code, fmt::format("--hostfile {}: {}", *flags.hostfile, file.error().message));
    MUSTER_TRY(auto hosts, launch::parse_hostfile(file->text, *flags.hostfile));
    said.hosts = {std::move(hosts), name};
  }
  if (said.hosts)
    said.reach = Setting<launch::Reach>{flags.host_index ? launch::Reach::each : launch::Reach::ssh, name};
  return {};
}

Result<> read_tail(PartialSettings& said, const RunFlags& flags) {
  if (!flags.tail) return {};
  Setting<std::vector<std::int64_t>> tail{{}, "--tail"};
  for (std::string_view rest = *flags.tail; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    std::int64_t rank = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + comma, rank);
    if (error != std::errc{} || end != rest.data() + comma)
      return wrong(fmt::format("--tail {}: write ranks, as in --tail 0,3", *flags.tail));
    tail.value.push_back(rank);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  said.tail = std::move(tail);
  return {};
}

void read_roles(PartialSettings& said, const RunFlags& flags) {
  if (!flags.roles) return;
  said.roles = Setting<std::vector<std::string>>{CLI::detail::split(*flags.roles, ','), "--roles"};
}

Result<> read_preload(PartialSettings& said, const RunFlags& flags) {
  if (!flags.preload) return {};
  if (flags.preload->empty()) return wrong("--preload: name modules, as in --preload torch,torch._dynamo");
  std::vector<std::string> modules;
  for (std::string_view rest = *flags.preload;; rest.remove_prefix(rest.find(',') + 1)) {
    modules.emplace_back(rest.substr(0, rest.find(',')));
    if (rest.find(',') == std::string_view::npos) break;
  }
  said.preload = Setting<std::vector<std::string>>{std::move(modules), "--preload"};
  return {};
}

Result<> read_environment(PartialSettings& said, const RunFlags& flags) {
  for (const std::string& entry : flags.environment) {
    const auto equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos)
      return wrong(fmt::format("--env {}: write NAME=VALUE", entry));
    said.environment.insert_or_assign(entry.substr(0, equals),
                                      Setting<std::string>{entry.substr(equals + 1), "--env"});
  }
  const auto set_path = [&](const char* variable, const RunFlags::Text& path, const char* name) {
    if (!path) return;
    said.environment.insert_or_assign(variable,
                                      Setting<std::string>{std::filesystem::absolute(*path).string(), name});
  };
  set_path("MUSTER_METRICS_FILE", flags.metrics_file, "--metrics-file");
  set_path("MUSTER_PROFILE", flags.profile, "--profile");
  return {};
}

// What other launchers take for a number of workers.
std::string check_workers(const std::string& text) {
  if (text == "p") return "-np is -n here: write -n NUMBER";
  if (text == "auto" || text == "cpu" || text == "gpu")
    return fmt::format("-n {}: write how many workers to start on each host, as -n $(nproc)", text);
  return {};
}

// torchrun takes a range: its jobs grow and shrink.
std::string check_host_count(const std::string& text) {
  if (text.find(':') == std::string::npos) return {};
  return fmt::format(
      "--nnodes {}: a job keeps its size, write one number of hosts; --max-restarts NUMBER starts again what "
      "dies",
      text);
}

void add_places(CLI::App& command, RunFlags& flags) {
  command.add_option("-n,--workers,--slots", flags.slots, "Workers per host")
      ->type_name("NUMBER")
      ->check(check_workers, "");
  command.add_option("--hosts", flags.hosts, "Hosts of the job and their slots, reached by ssh")
      ->type_name("HOST:N,...");
  command.add_option("--hostfile", flags.hostfile, "Read the hosts and slots from a file")->type_name("FILE");
  command.add_option("--ssh", flags.ssh, "The ssh command and its options (default: ssh)")
      ->type_name("WORDS");
  command.add_option("--nnodes", flags.host_count, "Number of hosts (default: 1)")
      ->type_name("NUMBER")
      ->check(check_host_count, "");
  command.add_option("--node-rank", flags.host_index, "Rank of this host, from 0; host 0 runs the scheduler")
      ->type_name("NUMBER");
  command
      .add_option("--scheduler,--master", flags.scheduler,
                  "Address of the scheduler or master of a job on several hosts")
      ->type_name("HOST:PORT");
  command
      .add_option("--roles", flags.roles,
                  "Start only these processes on this host: scheduler, or worker,server (default: all)")
      ->type_name("ROLES");
  command.add_option("--port", flags.port, "Port of the scheduler or master (default: a free one)")
      ->type_name("PORT");
}

void add_files(CLI::App& command, RunFlags& flags) {
  const auto add = [&](const char* flag, RunFlags::Text& file, const char* description) {
    command.add_option(flag, file, description)->type_name("FILE");
  };
  add("--tls-config", flags.tls_config, "Encrypt with the certificates that this JSON file names");
  add("--client-password-file", flags.client_password_file,
      "File with the password of client_cert_path; fd:N reads a descriptor");
  add("--server-password-file", flags.server_password_file, "File with the password of server_cert_path");
  add("--token-file", flags.token_file, "Use the secret in this file (default: a random one for this job)");
  command.add_flag("--open", flags.is_open, "No secret: any process that reaches the job may join it");
  add("--rank-table", flags.rank_table, "Rank table of an ascend job; see muster ranktable");
  command.add_option("--job", flags.job_file, "Read all options from a file; flags override it")
      ->type_name("FILE");
}

std::string preset_choices() {
  std::string text = "What the script expects (default: guessed from it, else muster):";
  for (const launch::Preset& preset : launch::presets())
    text += fmt::format("\n{}: {}", preset.name, preset.summary);
  return text;
}

}  // namespace

void add_run_flags(CLI::App& command, RunFlags& flags) {
  command.footer(footer);
  command.add_option("--preset", flags.preset, preset_choices())->type_name("NAME");
  command
      .add_option("--style", flags.style,
                  "How the preset passes ranks and addresses: init_method or env for pytorch, arguments or "
                  "chief for tensorflow")
      ->type_name("NAME");
  add_places(command, flags);
  command.add_option("--servers", flags.servers, "Parameter servers of the job (default: 0)")
      ->type_name("NUMBER");
  command
      .add_option("--log-dir,--run-folder", flags.log_folder,
                  "Folder of the run: the log of each process, its settings, versions, code and history, for "
                  "`muster runs` (default: muster-logs/<time>)")
      ->type_name("FOLDER");
  command
      .add_option("--tail", flags.tail, "Print only the output of these ranks; the log files have all of it")
      ->type_name("RANK,RANK");
  command
      .add_option("--metrics-port", flags.metrics_port,
                  "Serve the numbers of the job to Prometheus at http://127.0.0.1:PORT/metrics, or at HOST")
      ->type_name("[HOST:]PORT");
  command
      .add_flag("--dashboard{0}", flags.dashboard,
                "Serve a page of the job, at a free port of this host; --dashboard=[HOST:]PORT chooses one")
      ->type_name("[=[HOST:]PORT]");
  command
      .add_option(
          "--metrics-file", flags.metrics_file,
          "Append a line of JSON for each step to this file; with {rank} in the name, one for each worker")
      ->type_name("FILE");
  command
      .add_option("--profile", flags.profile,
                  "Record what every worker does into this folder, for `muster profile FOLDER`")
      ->type_name("FOLDER");
  command
      .add_option("--max-restarts", flags.max_restarts, "How often each process is restarted (default: 0)")
      ->type_name("NUMBER");
  command
      .add_option(
          "--restart", flags.restart,
          "What --max-restarts starts again: the process that died, which the others wait for, or the "
          "whole group (default: process)")
      ->type_name("process|group");
  command
      .add_option(
          "--preload", flags.preload,
          "Import these modules of Python once on each host; its processes begin with them, also when "
          "they are started again")
      ->type_name("MODULE,MODULE");
  command.add_option("--env", flags.environment, "Set a variable for the processes; repeatable")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  add_files(command, flags);
  command.add_flag("--dry-run", flags.is_dry,
                   "Print the job as a job file and the processes, and start nothing");
  command.add_flag("--explain", flags.explains, "Like --dry-run, with the origin of each value");
}

Result<launch::PartialSettings> settings_of(const RunFlags& flags) {
  PartialSettings said;
  if (!flags.command.empty()) said.command = {flags.command, "command line"};
  say(said.preset, flags.preset, "--preset");
  say(said.slots, flags.slots, "-n");
  say(said.host_count, flags.host_count, "--nnodes");
  say(said.self, flags.host_index, "--node-rank");
  say(said.scheduler, flags.scheduler, "--scheduler");
  say(said.port, flags.port, "--port");
  say(said.servers, flags.servers, "--servers");
  say(said.max_restarts, flags.max_restarts, "--max-restarts");
  say(said.restart, flags.restart, "--restart");
  say(said.style, flags.style, "--style");
  say(said.rank_table, flags.rank_table, "--rank-table");
  say(said.ssh, flags.ssh, "--ssh");
  say(said.log_folder, flags.log_folder, "--log-dir");
  say(said.metrics_port, flags.metrics_port, "--metrics-port");
  say(said.dashboard, flags.dashboard, "--dashboard");
  say(said.tls_config, flags.tls_config, "--tls-config");
  say(said.client_password_file, flags.client_password_file, "--client-password-file");
  say(said.server_password_file, flags.server_password_file, "--server-password-file");
  say(said.token_file, flags.token_file, "--token-file");
  if (flags.is_open) said.is_open = Setting<bool>{true, "--open"};
  MUSTER_TRY_VOID(read_hosts(said, flags));
  read_roles(said, flags);
  MUSTER_TRY_VOID(read_tail(said, flags));
  MUSTER_TRY_VOID(read_preload(said, flags));
  MUSTER_TRY_VOID(read_environment(said, flags));
  return said;
}

}  // namespace muster::app
