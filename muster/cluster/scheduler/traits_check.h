// Traits check: whether the processes of a job are alike, before the first step of each epoch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/cluster/scheduler/peer.h"

namespace muster::cluster {

class Job;

// Whether the job is to end where traits differ (MUSTER_STRICT).
bool is_strict(const Job& job);
// A line for each trait that not all have alike.
std::vector<std::string> differences(const Job& job);
// Names what differs, and ends the job where that is asked for. False: it has failed.
bool check_traits(Job& job);
// Why a process that comes back to a strict job is turned away: for what the others would end by.
std::optional<std::string> misfit(const Job& job, const Registrant& registrant);

}  // namespace muster::cluster
