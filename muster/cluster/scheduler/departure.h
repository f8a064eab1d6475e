// Departure: who may leave a job that recovers while others still lack the end of a call in their folders.
#pragma once

#include <cstdint>
#include <optional>

#include "muster/cluster/messages.h"

namespace muster::cluster {

class Job;

// A worker that may still need the process of this connection; nothing: it may leave.
std::optional<std::uint32_t> who_may_need(const Job& job, PeerId id);

}  // namespace muster::cluster
