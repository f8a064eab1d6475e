#include "muster/launch/kubernetes/check.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "muster/cluster/cluster.h"
#include "muster/launch/kubernetes/names.h"
#include "muster/launch/kubernetes/pods.h"
#include "muster/launch/settings/wrong.h"

namespace muster::launch::kubernetes {
namespace {

constexpr std::int64_t restarts_max = 1'000'000;
constexpr std::int64_t grace_s_max = 86'400;
constexpr std::int64_t user_max = 4'294'967'294;
constexpr std::size_t host_name_size_max = 63;

struct Number {
  std::string_view flag;
  std::int64_t value;
  std::int64_t min;
  std::int64_t max;
};

Result<> check_numbers(const Job& job) {
  for (const Number& number :
       {Number{"--nnodes", job.nodes, 1, cluster::worker_num_max},
        Number{"-n", job.slots, 1, cluster::worker_num_max},
        Number{"--servers", job.servers, 0, cluster::worker_num_max}, Number{"--port", job.port, 1024, 65535},
        Number{"--max-restarts", job.max_restarts, 0, restarts_max},
        Number{"--user", job.user.value_or(0), 0, user_max}, Number{"--grace", job.grace_s, 0, grace_s_max}})
    if (number.value < number.min || number.value > number.max)
      return wrong(fmt::format("{} {}: a whole number from {} to {} is allowed", number.flag, number.value,
                               number.min, number.max));
  if (job.nodes * job.slots > cluster::worker_num_max)
    return wrong(fmt::format("--nnodes {} with -n {}: a job has at most {} workers", job.nodes, job.slots,
                             cluster::worker_num_max));
  return {};
}

constexpr std::string_view label_rule =
    "small letters, digits and '-' are allowed, a letter first, 63 at most";
constexpr std::string_view subdomain_rule = "small letters, digits, '-' and '.' are allowed";

struct Name {
  std::string_view flag;
  const std::string& value;
  bool (*is_allowed)(std::string_view);
  std::string_view rule;
};

Result<> check_names(const Job& job) {
  if (job.name.empty()) return wrong("give the job a name, for example: --name train");
  for (const Name& name : {Name{"--name", job.name, is_label, label_rule},
                           Name{"--namespace", job.name_space, is_label, label_rule},
                           Name{"--recovery-claim", job.recovery_claim, is_subdomain, subdomain_rule},
                           Name{"--tls-secret", job.tls_secret, is_subdomain, subdomain_rule},
                           Name{"--token-secret", job.token_secret, is_subdomain, subdomain_rule},
                           Name{"--image-pull-secret", job.image_secret, is_subdomain, subdomain_rule},
                           Name{"--service-account", job.service_account, is_subdomain, subdomain_rule}})
    if (!name.value.empty() && !name.is_allowed(name.value))
      return wrong(fmt::format("{} '{}': {}", name.flag, name.value, name.rule));
  const std::string longest = longest_host_name(job);
  if (longest.size() > host_name_size_max)
    return wrong(fmt::format("--name '{}': the pod '{}' would have a name of {} letters, and {} are allowed",
                             job.name, longest, longest.size(), host_name_size_max));
  if (job.image.empty())
    return wrong("name the image that holds the script and Muster, for example: --image registry/train:1");
  if (job.image.find_first_of(" \t\r\n") != std::string::npos)
    return wrong(fmt::format("--image '{}': the name of an image has no space", job.image));
  return {};
}

Result<> check_values(const Job& job) {
  for (const auto& [name, quantity] : job.resources)
    if (!is_qualified_name(name) || !is_quantity(quantity))
      return wrong(
          fmt::format("--limit '{}={}': say it like cpu=4, memory=16Gi or nvidia.com/gpu=8", name, quantity));
  if (!job.shared_memory.empty() && !is_quantity(job.shared_memory))
    return wrong(fmt::format("--shm '{}': say it like 1Gi", job.shared_memory));
  for (const auto& [name, value] : job.node_selector)
    if (!is_qualified_name(name) || !is_label_value(value))
      return wrong(
          fmt::format("--node-selector '{}={}': say it like topology.kubernetes.io/zone=a", name, value));
  return {};
}

Result<> check_mounts(const Job& job) {
  std::set<std::string> taken = own_folders();
  for (const Mount& mount : job.mounts) {
    const std::string said = fmt::format("--volume '{}:{}'", mount.claim, mount.path);
    if (!is_subdomain(mount.claim) || !is_mount_path(mount.path))
      return wrong(said + ": say it like claim:/data or claim:/data:ro");
    if (!taken.insert(mount.path).second) return wrong(said + ": something else is mounted there already");
  }
  return {};
}

Result<> check_environment(const Job& job) {
  const std::set<std::string> own = own_variables(job);
  for (const auto& [name, value] : job.environment) {
    if (!is_variable_name(name))
      return wrong(
          fmt::format("--env '{}={}': the name of a variable has letters, digits and '_' only", name, value));
    if (own.contains(name))
      return wrong(fmt::format("--env {}: `muster k8s` sets it itself, from its other options", name));
  }
  return {};
}

Result<> check_contradictions(const Job& job) {
  if (!job.tls_secret.empty() && !job.token_secret.empty())
    return wrong("--tls-secret and --token-secret: a job has certificates or a token, not both");
  for (const auto& [flag, name] :
       {std::pair{"--tls-secret", &job.tls_secret}, std::pair{"--token-secret", &job.token_secret}})
    if (job.is_open && !name->empty())
      return wrong(
          fmt::format("--open lets unauthorized peers in, and {} keeps them out: leave one out", flag));
  if (job.max_restarts > 0 && job.recovery_claim.empty())
    return wrong(
        fmt::format("--max-restarts {}: a pod that takes another's place finds recovery points only in "
                    "a volume that all pods can write: --recovery-claim CLAIM",
                    job.max_restarts));
  if (job.max_restarts == 0 && !job.recovery_claim.empty())
    return wrong(
        fmt::format("--recovery-claim {}: say how often a process may be started again, for example: "
                    "--max-restarts 10",
                    job.recovery_claim));
  if (!has_scheduler(job) && job.scheduler_place == SchedulerPlace::own_job)
    return wrong(fmt::format("--scheduler-job: the preset '{}' has no scheduler", job.preset));
  if (!has_scheduler(job) && job.max_restarts > 0)
    return wrong(fmt::format("--max-restarts {}: jobs of the preset '{}' do not recover", job.max_restarts,
                             job.preset));
  if (job.command.empty())
    return wrong("name what to run, for example: muster k8s --name train --image registry/train:1 train.py");
  return {};
}

}  // namespace

Result<> check(const Job& job) {
  MUSTER_TRY_VOID(check_contradictions(job));
  MUSTER_TRY_VOID(check_numbers(job));
  MUSTER_TRY_VOID(check_names(job));
  MUSTER_TRY_VOID(check_values(job));
  MUSTER_TRY_VOID(check_mounts(job));
  return check_environment(job);
}

}  // namespace muster::launch::kubernetes
