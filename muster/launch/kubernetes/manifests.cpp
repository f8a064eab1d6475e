#include <fmt/format.h>

#include "muster/cluster/cluster.h"
#include "muster/launch/kubernetes/check.h"
#include "muster/launch/kubernetes/job.h"
#include "muster/launch/kubernetes/pods.h"
#include "muster/launch/kubernetes/yaml.h"

namespace muster::launch::kubernetes {
namespace {

Document metadata(const Job& job, const std::string& name) {
  Document made = {{"name", name}};
  if (!job.name_space.empty()) made.emplace("namespace", job.name_space);
  made.emplace("labels", labels(job));
  return made;
}

// Gives each pod a name. Processes find each other before any pod is ready: they are so only together.
Document service(const Job& job) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", metadata(job, job.name)},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", labels(job)},
            {"ports", Document::array({{{"name", "scheduler"}, {"port", job.port}}})}}}};
}

// Drawn once: a file that changed below running pods would keep those out that are started again.
Document token_secret(const Job& job) {
  return {{"apiVersion", "v1"}, {"kind", "Secret"},  {"metadata", metadata(job, token_secret_name(job))},
          {"type", "Opaque"},   {"immutable", true}, {"stringData", {{"token", job.token}}}};
}

// Only the job's own pods reach them. What they reach (names, data) is not restricted.
Document network_policy(const Job& job) {
  const Document own_pods = {{"podSelector", {{"matchLabels", labels(job)}}}};
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata", metadata(job, job.name)},
          {"spec",
           {{"podSelector", {{"matchLabels", labels(job)}}},
            {"policyTypes", Document::array({"Ingress"})},
            {"ingress", Document::array({{{"from", Document::array({own_pods})}}})}}}};
}

// What becomes of a pod that failed in a job that recovers. The first rule that fits holds.
Document failure_policy(const char* container) {
  // Of `muster run`: a wrong command line or setting, a refusal, a program that is not there. The next pod
  // would end as this one did.
  const Document hopeless = {2, cluster::exit_code_refused, cluster::exit_code_configuration, 126, 127};
  const Document rules = Document::array(
      {// Evicted, preempted, its node drained: that is no failure of the job, and does not count.
       {{"action", "Ignore"},
        {"onPodConditions", Document::array({{{"type", "DisruptionTarget"}, {"status", "True"}}})}},
       {{"action", "FailJob"},
        {"onExitCodes", {{"containerName", container}, {"operator", "In"}, {"values", hopeless}}}}});
  return {{"rules", rules}};
}

// JobSpec of pods that take part in the training together: without recovery the first failure is the job's.
Document job_spec(const Job& job, const char* container, Document pods) {
  Document spec = {{"backoffLimit", job.max_restarts}};
  // A new pod comes when the old one has gone: the place of each is taken once.
  spec.emplace("podReplacementPolicy", "Failed");
  if (job.max_restarts > 0) spec.emplace("podFailurePolicy", failure_policy(container));
  spec.emplace("template", std::move(pods));
  return spec;
}

Document worker_spec(const Job& job) {
  Document spec = {{"completionMode", "Indexed"}, {"completions", job.nodes}, {"parallelism", job.nodes}};
  spec.update(job_spec(job, worker_container, worker_template(job)));
  return spec;
}

Document scheduler_spec(const Job& job) {
  return job_spec(job, scheduler_container, scheduler_template(job));
}

Document batch_job(const Job& job, const std::string& name, Document spec) {
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", metadata(job, name)},
          {"spec", std::move(spec)}};
}

Document replicated(const char* name, Document spec) {
  return {{"name", name}, {"replicas", 1}, {"template", {{"spec", std::move(spec)}}}};
}

// A JobSet brings its own headless service. Its Jobs replace pods, so the set itself never starts again.
Document job_set(const Job& job) {
  Document jobs = Document::array();
  if (has_scheduler(job)) jobs.push_back(replicated("scheduler", scheduler_spec(job)));
  jobs.push_back(replicated("workers", worker_spec(job)));
  return {{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
          {"kind", "JobSet"},
          {"metadata", metadata(job, job.name)},
          {"spec",
           {{"network",
             {{"enableDNSHostnames", true}, {"subdomain", job.name}, {"publishNotReadyAddresses", true}}},
            {"startupPolicy", {{"startupPolicyOrder", "InOrder"}}},
            {"successPolicy", {{"operator", "All"}}},
            {"failurePolicy", {{"maxRestarts", 0}}},
            {"replicatedJobs", std::move(jobs)}}}};
}

std::vector<Document> documents(const Job& job) {
  std::vector<Document> list;
  if (needs_token(job)) list.push_back(token_secret(job));
  if (!job.is_open) list.push_back(network_policy(job));
  if (job.scheduler_place == SchedulerPlace::job_set) {
    list.push_back(job_set(job));
    return list;
  }
  list.push_back(service(job));
  if (has_scheduler(job) && job.scheduler_place == SchedulerPlace::own_job)
    list.push_back(batch_job(job, job.name + "-scheduler", scheduler_spec(job)));
  list.push_back(batch_job(job, job.name, worker_spec(job)));
  return list;
}

}  // namespace

bool needs_token(const Job& job) {
  return !job.is_open && job.tls_secret.empty() && job.token_secret.empty();
}

Result<std::string> manifests(const Job& job, Format format) {
  MUSTER_TRY_VOID(check(job));
  MUSTER_CHECK(!needs_token(job) || !job.token.empty(), "a job that is not open needs its token");
  if (format == Format::yaml) return yaml_text(documents(job));
  const Document list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", documents(job)}};
  return list.dump(2, ' ', false, Document::error_handler_t::replace) + "\n";
}

}  // namespace muster::launch::kubernetes
