// Registration: why a process cannot be part of the job.
#pragma once

#include <optional>
#include <string>

#include "muster/cluster/messages.h"

namespace muster::cluster {

class Job;
struct SchedulerConfig;

// Of a process with these settings, of no job of this scheduler.
std::optional<std::string> unusable(const SchedulerConfig& config, const message::Register& request);
// Of a job that does not recover.
std::optional<std::string> reason_to_refuse(const Job& job, const Message& message,
                                            const message::Register& request);

}  // namespace muster::cluster
