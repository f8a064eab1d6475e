// Kubernetes job: the input of `muster k8s`, a training job as it shall run on Kubernetes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"

namespace muster::launch::kubernetes {

// A PersistentVolumeClaim that exists, and where the containers see it.
struct Mount {
  std::string claim = {};
  std::string path = {};
  bool read_only = false;
};

// Where the scheduler runs. A preset that has none needs none of them.
enum class SchedulerPlace {
  sidecar,  // beside the workers of index 0
  own_job,  // a Job of its own
  job_set,  // with the workers in one JobSet
};

struct Job {
  std::string name = {};
  std::string name_space = {};  // empty: that of kubectl
  std::string image = {};
  std::string preset = "muster";
  std::string style = {};                 // of the preset; empty: its default
  std::vector<std::string> preload = {};  // modules that each pod imports once, of Python
  SchedulerPlace scheduler_place = SchedulerPlace::sidecar;
  std::vector<std::string> command = {};  // the script or program as it is in the image, and its arguments
  std::map<std::string, std::string> environment = {};
  std::int64_t nodes = 1;
  std::int64_t slots = 1;  // workers of each node
  std::int64_t servers = 0;
  std::int64_t port = 8118;  // of the scheduler
  std::int64_t max_restarts = 0;
  std::map<std::string, std::string> resources = {};  // of each node: "cpu": "4", "nvidia.com/gpu": "8"
  std::string shared_memory = {};                     // of /dev/shm, e.g. "1Gi"; empty: the runtime's own
  std::vector<Mount> mounts = {};
  std::string recovery_claim = {};  // that all nodes can write; needed with max_restarts
  std::string tls_secret = {};      // holds config.json and what it names, client.password, server.password
  std::string token_secret = {};    // holds token
  std::string token = {};           // what a Secret of the job's own holds, where it needs one
  bool is_open = false;             // nothing keeps unauthorized peers out
  std::string image_secret = {};    // to pull the image with
  std::string service_account = {};
  std::map<std::string, std::string> node_selector = {};
  std::optional<std::int64_t> user = {};  // runs the containers; empty: the image's
  std::int64_t grace_s = 30;              // from SIGTERM to SIGKILL
};

enum class Format { yaml, json };

// Whether `token` has to be there: the user named no secret, and the job is not to be open.
bool needs_token(const Job& job);

// What `kubectl apply -f -` takes: a Secret and a NetworkPolicy that keep unauthorized peers out, a headless
// service and an Indexed Job, or a JobSet. Pure. Errors name the flag of `muster k8s`, its value and what is
// allowed.
Result<std::string> manifests(const Job& job, Format format);

}  // namespace muster::launch::kubernetes
