// The pods of a job: what runs in them, and what they see.
#pragma once

#include <set>
#include <string>

#include "muster/launch/kubernetes/job.h"
#include "muster/launch/kubernetes/yaml.h"

namespace muster::launch::kubernetes {

// Whether the preset has a scheduler of Muster's; the others meet at the first host.
bool has_scheduler(const Job& job);

// The name at which the job meets: that of the pod that runs the scheduler, or of the first host.
std::string rendezvous_host(const Job& job);
// Of the pod whose name is the longest.
std::string longest_host_name(const Job& job);

// Variables and folders that the pods have anyway, and that the user may not set.
std::set<std::string> own_variables(const Job& job);
std::set<std::string> own_folders();

// The Secret that holds the job's token: a named one, else its own. Empty: there is none.
std::string token_secret_name(const Job& job);

// By this label the service finds all pods of the job.
Document labels(const Job& job);

// PodTemplateSpec of the nodes, and of a scheduler that has a pod to itself.
Document worker_template(const Job& job);
Document scheduler_template(const Job& job);

// The name of the container whose exit code is the pod's.
inline constexpr const char* worker_container = "worker";
inline constexpr const char* scheduler_container = "scheduler";

}  // namespace muster::launch::kubernetes
