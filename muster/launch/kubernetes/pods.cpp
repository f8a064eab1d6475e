#include "muster/launch/kubernetes/pods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace muster::launch::kubernetes {
namespace {

constexpr const char* tls_folder = "/etc/muster/tls";
constexpr const char* token_folder = "/etc/muster/token";
constexpr const char* recovery_folder = "/var/lib/muster/recovery";
constexpr const char* log_folder = "/var/log/muster";
constexpr const char* shared_memory_folder = "/dev/shm";

// Names of pods appear when they are scheduled, and the last of them when the cluster has room for it.
constexpr const char* resolve_timeout_s = "1800";

bool has_sidecar(const Job& job) {
  return has_scheduler(job) && job.scheduler_place == SchedulerPlace::sidecar;
}

Document variable(const std::string& name, const std::string& value) {
  return {{"name", name}, {"value", value}};
}

// Kubernetes replaces "$(NAME)" in words and values, and "$$" by "$".
std::string literal(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped.append(c == '$' ? 2 : 1, c);
  return escaped;
}

std::map<std::string, std::string> security_variables(const Job& job) {
  if (!job.tls_secret.empty())
    return {{"MUSTER_TLS_CONFIG", fmt::format("{}/config.json", tls_folder)},
            {"MUSTER_TLS_CLIENT_PASSWORD_FILE", fmt::format("{}/client.password", tls_folder)},
            {"MUSTER_TLS_SERVER_PASSWORD_FILE", fmt::format("{}/server.password", tls_folder)}};
  if (!token_secret_name(job).empty()) return {{"MUSTER_TOKEN_FILE", fmt::format("{}/token", token_folder)}};
  return {};
}

std::map<std::string, std::string> common_variables(const Job& job) {
  std::map<std::string, std::string> variables = security_variables(job);
  if (job.max_restarts > 0)
    variables.emplace("MS_RECOVERY_PATH", fmt::format("{}/{}", recovery_folder, job.name));
  return variables;
}

Document environment(const Job& job, bool is_scheduler) {
  Document list = Document::array();
  for (const auto& [name, value] : common_variables(job)) list.push_back(variable(name, value));
  if (!job.environment.contains("MUSTER_RESOLVE_TIMEOUT"))
    list.push_back(variable("MUSTER_RESOLVE_TIMEOUT", resolve_timeout_s));
  // The pod's own address: its name may not be known to it yet.
  if (is_scheduler)
    list.push_back({{"name", "MUSTER_BIND"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}});
  for (const auto& [name, value] : job.environment) list.push_back(variable(name, literal(value)));
  return list;
}

// `muster run` with what is the same in all pods, the part that runs here, and the user's command.
Document run_command(const Job& job, const std::string& roles) {
  Document words = {"muster", "run"};
  const auto add = [&](const char* flag, const std::string& value) {
    words.push_back(flag);
    words.push_back(value);
  };
  add("--preset", job.preset);
  if (!job.style.empty())
    add("--style", job.style);
  else if (job.preset == "pytorch" && job.slots == 1)
    add("--style", "init_method");  // as on hosts, also in one pod
  if (!job.preload.empty()) add("--preload", fmt::format("{}", fmt::join(job.preload, ",")));
  add("--nnodes", std::to_string(job.nodes));
  if (roles == "scheduler" && !has_sidecar(job)) add("--node-rank", "0");  // no index in a Job of its own
  add("-n", std::to_string(job.slots));
  if (job.servers > 0) add("--servers", std::to_string(job.servers));
  add("--scheduler", fmt::format("{}:{}", rendezvous_host(job), job.port));
  if (!roles.empty()) add("--roles", roles);
  if (job.max_restarts > 0) add("--max-restarts", std::to_string(job.max_restarts));
  if (job.is_open) words.push_back("--open");
  add("--log-dir", log_folder);
  for (const std::string& word : job.command) words.push_back(literal(word));
  return words;
}

// A volume, and where a container sees it.
struct Volume {
  Document source;  // with its name
  std::string path;
  bool read_only = false;
};

Document secret(const std::string& volume, const std::string& name, const Job& job) {
  // For its owner alone; where the containers run as another user, for their group.
  const int mode = job.user ? 0440 : 0400;
  return {{"name", volume}, {"secret", {{"secretName", name}, {"defaultMode", mode}}}};
}

Document claim(const std::string& volume, const std::string& name) {
  return {{"name", volume}, {"persistentVolumeClaim", {{"claimName", name}}}};
}

std::vector<Volume> volumes(const Job& job) {
  std::vector<Volume> list = {{{{"name", "logs"}, {"emptyDir", Document::object()}}, log_folder}};
  if (!job.tls_secret.empty()) list.push_back({secret("tls", job.tls_secret, job), tls_folder, true});
  if (const std::string name = token_secret_name(job); !name.empty())
    list.push_back({secret("token", name, job), token_folder, true});
  if (!job.recovery_claim.empty()) list.push_back({claim("recovery", job.recovery_claim), recovery_folder});
  if (!job.shared_memory.empty())
    list.push_back(
        {{{"name", "shared-memory"}, {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", job.shared_memory}}}},
         shared_memory_folder});
  std::map<std::string, std::string> known;  // a claim that is mounted twice is one volume
  for (const Mount& mount : job.mounts) {
    const auto [volume, is_new] = known.emplace(mount.claim, fmt::format("volume-{}", known.size()));
    list.push_back({is_new ? claim(volume->second, mount.claim) : Document{{"name", volume->second}},
                    mount.path, mount.read_only});
  }
  return list;
}

Document mounts(const Job& job) {
  Document list = Document::array();
  for (const Volume& volume : volumes(job)) {
    Document mount = {{"name", volume.source.at("name")}, {"mountPath", volume.path}};
    if (volume.read_only) mount.emplace("readOnly", true);
    list.push_back(std::move(mount));
  }
  return list;
}

Document container(const Job& job, const char* name, Document command, bool is_scheduler) {
  return {{"name", name},
          {"image", job.image},
          {"command", std::move(command)},
          {"env", environment(job, is_scheduler)},
          {"volumeMounts", mounts(job)},
          {"securityContext", {{"allowPrivilegeEscalation", false}}}};
}

Document worker(const Job& job) {
  const std::string roles = !has_scheduler(job) ? "" : job.servers > 0 ? "worker,server" : "worker";
  Document made = container(job, worker_container, run_command(job, roles), false);
  if (!job.resources.empty()) made.emplace("resources", Document{{"limits", job.resources}});
  return made;
}

// Healthy is a scheduler that answers. `patience` failures in a row, and it is not.
Document probe(const Job& job, int period_s, int patience) {
  Document command = {"muster", "status", "--scheduler",
                      fmt::format("{}:{}", rendezvous_host(job), job.port)};
  if (has_sidecar(job)) {  // which is in the pods of all indexes, and serves in one
    command.push_back("--only-index");
    command.push_back("0");
  }
  return {{"exec", {{"command", std::move(command)}}},
          {"periodSeconds", period_s},
          {"timeoutSeconds", 10},
          {"failureThreshold", patience}};
}

Document scheduler(const Job& job) {
  Document command = run_command(job, "scheduler");
  if (has_sidecar(job)) command.insert(command.begin(), {"muster", "sidecar"});
  Document made = container(job, scheduler_container, std::move(command), true);
  if (has_sidecar(job)) made.emplace("restartPolicy", "Always");  // which makes a container a side container
  made.emplace("ports",
               Document::array({{{"name", "scheduler"}, {"containerPort", job.port}, {"protocol", "TCP"}}}));
  // It need not compute, but it begins by running the script's imports.
  made.emplace("resources", Document{{"requests", {{"cpu", "100m"}, {"memory", "256Mi"}}}});
  made.emplace("startupProbe", probe(job, 2, 150));
  made.emplace("readinessProbe", probe(job, 10, 3));
  made.emplace("livenessProbe", probe(job, 20, 3));
  return made;
}

Document security_context(const Job& job) {
  Document context = {{"seccompProfile", {{"type", "RuntimeDefault"}}}};
  if (!job.user) return context;
  context.emplace("runAsUser", *job.user);
  context.emplace("runAsGroup", *job.user);
  context.emplace("runAsNonRoot", *job.user != 0);
  context.emplace("fsGroup", *job.user);
  return context;
}

Document pod_spec(const Job& job) {
  // A Job with a policy for failures starts pods again, not containers.
  Document spec = {{"restartPolicy", "Never"}};
  if (job.scheduler_place != SchedulerPlace::job_set)
    spec.emplace("subdomain", job.name);  // JobSet sets its own
  spec.emplace("terminationGracePeriodSeconds", job.grace_s);
  // No pod asks Kubernetes for anything, and variables of a service named "muster" would look like settings.
  spec.emplace("automountServiceAccountToken", false);
  spec.emplace("enableServiceLinks", false);
  if (!job.service_account.empty()) spec.emplace("serviceAccountName", job.service_account);
  if (!job.image_secret.empty())
    spec.emplace("imagePullSecrets", Document::array({{{"name", job.image_secret}}}));
  if (!job.node_selector.empty()) spec.emplace("nodeSelector", job.node_selector);
  spec.emplace("securityContext", security_context(job));
  Document list = Document::array();
  for (Volume& volume : volumes(job))
    if (volume.source.size() > 1) list.push_back(std::move(volume.source));
  spec.emplace("volumes", std::move(list));
  return spec;
}

Document pod_template(const Job& job, Document spec) {
  return {{"metadata", {{"labels", labels(job)}}}, {"spec", std::move(spec)}};
}

std::string workers_name(const Job& job) {
  return job.scheduler_place == SchedulerPlace::job_set ? job.name + "-workers-0" : job.name;
}

}  // namespace

bool has_scheduler(const Job& job) { return job.preset == "muster" || job.preset == "mindspore"; }

std::string token_secret_name(const Job& job) {
  return needs_token(job) ? job.name + "-token" : job.token_secret;
}

std::string rendezvous_host(const Job& job) {
  std::string pod = workers_name(job) + "-0";
  if (has_scheduler(job) && job.scheduler_place == SchedulerPlace::own_job) pod = job.name + "-scheduler";
  if (has_scheduler(job) && job.scheduler_place == SchedulerPlace::job_set) pod = job.name + "-scheduler-0-0";
  return fmt::format("{}.{}", pod, job.name);
}

std::string longest_host_name(const Job& job) {
  const std::string last = fmt::format("{}-{}", workers_name(job), job.nodes - 1);
  const std::string rendezvous = rendezvous_host(job);
  const std::string scheduler = rendezvous.substr(0, rendezvous.find('.'));
  return last.size() > scheduler.size() ? last : scheduler;
}

std::set<std::string> own_variables(const Job& job) {
  std::set<std::string> names = {"MUSTER_BIND",   "MS_ROLE",       "MS_NODE_ID",    "MS_SCHED_HOST",
                                 "MS_SCHED_PORT", "MS_WORKER_NUM", "MS_SERVER_NUM", "JOB_COMPLETION_INDEX"};
  for (const auto& [name, value] : common_variables(job)) names.insert(name);
  return names;
}

std::set<std::string> own_folders() {
  return {tls_folder, token_folder, recovery_folder, log_folder, shared_memory_folder};
}

Document labels(const Job& job) {
  return {{"app.kubernetes.io/name", "muster"}, {"app.kubernetes.io/instance", job.name}};
}

Document worker_template(const Job& job) {
  Document spec = pod_spec(job);
  if (has_sidecar(job)) spec.emplace("initContainers", Document::array({scheduler(job)}));
  spec.emplace("containers", Document::array({worker(job)}));
  return pod_template(job, std::move(spec));
}

Document scheduler_template(const Job& job) {
  Document spec = pod_spec(job);
  if (job.scheduler_place == SchedulerPlace::own_job) spec.emplace("hostname", job.name + "-scheduler");
  spec.emplace("containers", Document::array({scheduler(job)}));
  return pod_template(job, std::move(spec));
}

}  // namespace muster::launch::kubernetes
