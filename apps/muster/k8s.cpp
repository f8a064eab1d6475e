// muster k8s: manifests of a job for Kubernetes. muster sidecar: how its scheduler runs beside workers.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "commands.h"
#include "muster/launch/launch.h"

namespace muster::app {
namespace {

namespace kubernetes = launch::kubernetes;

struct Flags {
  kubernetes::Job job;
  std::string job_file;
  launch::PartialSettings said;  // what a job file may say too
  bool is_own_job = false;
  bool is_job_set = false;
  bool is_json = false;
  std::vector<std::string> environment;
  std::vector<std::string> limits;
  std::vector<std::string> node_selector;
  std::vector<std::string> volumes;
};

Result<> read_pairs(const char* flag, const std::vector<std::string>& texts,
                    std::map<std::string, std::string>& pairs) {
  for (const std::string& text : texts) {
    const auto equals = text.find('=');
    if (equals == std::string::npos)
      return fail(Code::invalid_argument, fmt::format("{} '{}': say it like NAME=VALUE", flag, text));
    if (!pairs.emplace(text.substr(0, equals), text.substr(equals + 1)).second)
      return fail(Code::invalid_argument,
                  fmt::format("{} '{}': {} is given twice", flag, text, text.substr(0, equals)));
  }
  return {};
}

// "claim:/path" or "claim:/path:ro".
Result<> read_volumes(const std::vector<std::string>& texts, std::vector<kubernetes::Mount>& mounts) {
  for (const std::string& text : texts) {
    const auto colon = text.find(':');
    std::string path = colon == std::string::npos ? "" : text.substr(colon + 1);
    const bool is_read_only = path.ends_with(":ro");
    if (is_read_only) path.resize(path.size() - 3);
    if (path.empty())
      return fail(Code::invalid_argument,
                  fmt::format("--volume '{}': say it like claim:/data or claim:/data:ro", text));
    mounts.push_back({.claim = text.substr(0, colon), .path = path, .read_only = is_read_only});
  }
  return {};
}

template <class T>
void take(T& value, const std::optional<launch::Setting<T>>& said) {
  if (said) value = said->value;
}

// Hosts of a job file become pods, which are alike.
Result<> take_hosts(kubernetes::Job& job, const launch::PartialSettings& said) {
  if (!said.hosts || said.host_count) return {};
  job.nodes = static_cast<std::int64_t>(said.hosts->value.size());
  for (const launch::HostSlots& host : said.hosts->value) {
    if (said.slots || host.slots == 0) continue;
    if (host.slots != said.hosts->value.front().slots)
      return fail(Code::invalid_argument,
                  fmt::format("{}: hosts with {} and {} slots, and pods are alike: say -n",
                              said.hosts->origin, said.hosts->value.front().slots, host.slots));
    job.slots = host.slots;
  }
  return {};
}

// Names of files and hosts that mean nothing in a pod.
Result<> check_portable(const launch::PartialSettings& said) {
  using Said = launch::PartialSettings;
  struct Key {
    std::optional<launch::Setting<std::string>> Said::*setting;
    std::string_view name;
    std::string_view instead;
  };
  for (const Key& key :
       {Key{&Said::scheduler, "scheduler", "pods have names of their own, and --port says the port"},
        Key{&Said::rank_table, "rank_table",
            "mount it with --volume, and name it by --env RANK_TABLE_FILE=..."},
        Key{&Said::recovery_folder, "recovery", "--recovery-claim says where it is kept"},
        Key{&Said::tls_config, "tls_config", "--tls-secret says which secret holds it"},
        Key{&Said::client_password_file, "client_password_file", "--tls-secret says which secret holds it"},
        Key{&Said::server_password_file, "server_password_file", "--tls-secret says which secret holds it"},
        Key{&Said::token_file, "token_file", "--token-secret says which secret holds it"}})
    if (const auto& setting = said.*key.setting)
      return fail(Code::invalid_argument,
                  fmt::format("{}: leave out '{}': {}", setting->origin, key.name, key.instead));
  return {};
}

// Flags win over the job file.
Result<> take_settings(Flags& flags) {
  if (!flags.job_file.empty()) {
    MUSTER_TRY(auto written, read_job_file(flags.job_file, ""));
    MUSTER_TRY_VOID(check_portable(written));
    flags.said = launch::merged(std::move(flags.said), written);
  }
  const launch::PartialSettings& said = flags.said;
  kubernetes::Job& job = flags.job;
  MUSTER_TRY_VOID(take_hosts(job, said));
  take(job.preset, said.preset);
  take(job.style, said.style);
  take(job.preload, said.preload);
  take(job.command, said.command);
  take(job.nodes, said.host_count);
  take(job.slots, said.slots);
  take(job.servers, said.servers);
  take(job.port, said.port);
  take(job.max_restarts, said.max_restarts);
  take(job.is_open, said.is_open);
  for (const auto& [name, value] : said.environment) job.environment.emplace(name, value.value);
  return {};
}

Result<std::string> manifests_of(Flags flags) {
  if (flags.is_own_job && flags.is_job_set)
    return fail(Code::invalid_argument,
                "--jobset and --scheduler-job: in a JobSet the scheduler has a Job of its own anyway");
  MUSTER_TRY_VOID(read_pairs("--env", flags.environment, flags.job.environment));
  MUSTER_TRY_VOID(take_settings(flags));
  MUSTER_TRY_VOID(read_pairs("--limit", flags.limits, flags.job.resources));
  MUSTER_TRY_VOID(read_pairs("--node-selector", flags.node_selector, flags.job.node_selector));
  MUSTER_TRY_VOID(read_volumes(flags.volumes, flags.job.mounts));
  if (flags.is_own_job) flags.job.scheduler_place = kubernetes::SchedulerPlace::own_job;
  if (flags.is_job_set) flags.job.scheduler_place = kubernetes::SchedulerPlace::job_set;
  if (kubernetes::needs_token(flags.job)) flags.job.token = launch::new_token();
  return kubernetes::manifests(flags.job,
                               flags.is_json ? kubernetes::Format::json : kubernetes::Format::yaml);
}

int print_manifests(const Flags& flags) {
  const auto text = manifests_of(flags);
  if (!text) {
    fmt::print(stderr, "muster k8s: {}\n", text.error().message);
    return exit_code_usage;
  }
  fmt::print("{}", *text);
  return 0;
}

int run_sidecar(const std::vector<std::string>& command) {
  if (command.empty()) {
    fmt::print(stderr, "muster sidecar: name what to run, for example: muster sidecar muster run ...\n");
    return exit_code_usage;
  }
  const auto exit_code = kubernetes::run_sidecar(command);
  if (!exit_code) fmt::print(stderr, "muster sidecar: {}\n", exit_code.error().message);
  return exit_code ? *exit_code : 1;
}

// An option that a job file may say too.
template <class T>
CLI::Option* add_setting(CLI::App& command, const char* name, std::optional<launch::Setting<T>>& setting,
                         const char* description) {
  return command.add_option_function<T>(
      name,
      [&setting, name](const T& value) {
        setting = launch::Setting<T>{value, name};
      },
      description);
}

void add_size_options(CLI::App& command, Flags& flags) {
  kubernetes::Job& job = flags.job;
  add_setting(command, "--nnodes", flags.said.host_count, "Number of pods that train (default: 1)")
      ->type_name("NUMBER");
  add_setting(command, "-n", flags.said.slots, "Workers per pod (default: 1)")->type_name("NUMBER");
  add_setting(command, "--servers", flags.said.servers, "Parameter servers of the job (default: 0)")
      ->type_name("NUMBER");
  command.add_option("--limit", flags.limits, "Resources per pod: cpu=4, memory=16Gi, nvidia.com/gpu=8")
      ->type_name("NAME=QUANTITY")
      ->allow_extra_args(false);
  command.add_option("--shm", job.shared_memory, "Size of /dev/shm, for libraries that need it: 1Gi")
      ->type_name("QUANTITY");
}

void add_place_options(CLI::App& command, Flags& flags) {
  kubernetes::Job& job = flags.job;
  command.add_flag("--scheduler-job", flags.is_own_job,
                   "The scheduler in a Job of its own instead of beside the workers of index 0");
  command.add_flag("--jobset", flags.is_job_set, "A JobSet instead of Jobs and a service");
  add_setting(command, "--port", flags.said.port, "Port of the scheduler (default: 8118)")->type_name("PORT");
  command.add_option("--namespace", job.name_space, "Default: that of kubectl")->type_name("NAME");
  command.add_option("--node-selector", flags.node_selector, "Run on nodes with this label")
      ->type_name("LABEL=VALUE")
      ->allow_extra_args(false);
  command.add_option("--service-account", job.service_account, "Service account of the pods")
      ->type_name("NAME");
  command.add_option("--image-pull-secret", job.image_secret, "Secret to pull the image with")
      ->type_name("NAME");
  command
      .add_option("--user", job.user, "Number of the user that the containers run as (default: the image's)")
      ->type_name("UID");
  command.add_option("--grace", job.grace_s, "Seconds from SIGTERM to SIGKILL (default: 30)")
      ->type_name("SECONDS");
}

void add_content_options(CLI::App& command, Flags& flags) {
  kubernetes::Job& job = flags.job;
  command.add_option("--env", flags.environment, "Set a variable for the processes; repeatable")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_option("--volume", flags.volumes, "Mount a PersistentVolumeClaim at PATH")
      ->type_name("CLAIM:PATH[:ro]")
      ->allow_extra_args(false);
  command
      .add_option("--tls-secret", job.tls_secret,
                  "Secret with config.json, its certificates, client.password and server.password")
      ->type_name("NAME");
  command
      .add_option("--token-secret", job.token_secret,
                  "Secret with the key token (default: a new one, which is printed too)")
      ->type_name("NAME");
  command.add_flag_callback(
      "--open",
      [&flags] {
        flags.said.is_open = launch::Setting<bool>{true, "--open"};
      },
      "Neither a token nor a NetworkPolicy: any process that reaches the pods may join the job");
  add_setting(command, "--max-restarts", flags.said.max_restarts,
              "How often a process, or a pod, is restarted (default: 0)")
      ->type_name("NUMBER");
  command
      .add_option("--recovery-claim", job.recovery_claim,
                  "PersistentVolumeClaim for recovery that all pods can write")
      ->type_name("NAME");
}

void add_manifests(CLI::App& app, Invocation& invocation) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("k8s", "Print manifests that train on Kubernetes");
  command->footer(
      "\nAfter the options come the script or program, as it is called in the image, and its own arguments:\n"
      "  muster k8s --name train --image registry/train:1 --nnodes 2 -n 4 train.py --epochs 10 | kubectl "
      "apply -f -");
  command->add_option("--name", flags->job.name, "Name of the job, its service and its pods")
      ->type_name("NAME");
  command->add_option("--image", flags->job.image, "Image with the script and Muster")->type_name("IMAGE");
  add_setting(*command, "--preset", flags->said.preset, "As of muster run (default: muster)")
      ->type_name("NAME");
  add_setting(*command, "--style", flags->said.style, "As of muster run")->type_name("NAME");
  command->add_option("--job", flags->job_file, "A job file, as for muster run; flags override it")
      ->type_name("FILE");
  add_size_options(*command, *flags);
  add_place_options(*command, *flags);
  add_content_options(*command, *flags);
  command->add_flag("--json", flags->is_json, "Print JSON instead of YAML");
  command->prefix_command();
  command->callback([command, flags, &invocation] {
    const auto words = command->remaining();
    if (const auto known = check_option(*command, words); !known) {
      invocation.exit_code = refuse("k8s", known.error().message);
      return;
    }
    if (!words.empty())
      flags->said.command = launch::Setting<std::vector<std::string>>{words, "command line"};
    invocation.exit_code = print_manifests(*flags);
  });
}

void add_sidecar(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("sidecar", "Run a scheduler beside workers on Kubernetes; muster k8s writes this");
  command->prefix_command();
  command->callback([command, &invocation] { invocation.exit_code = run_sidecar(command->remaining()); });
}

}  // namespace

void add_kubernetes(CLI::App& app, Invocation& invocation) {
  add_manifests(app, invocation);
  add_sidecar(app, invocation);
}

}  // namespace muster::app
