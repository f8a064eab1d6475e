// Invariants of a simulated job, whatever happens: one roster per epoch, no rank twice, nothing accepted from
// another epoch, every wait ends, every process learns the true outcome.
#pragma once

#include <string>
#include <vector>

#include "recovery_simulator.h"
#include "simulator.h"

namespace muster::cluster::sim {

// Those that the run broke, in words.
std::vector<std::string> broken_promises(const Plan& plan, const RunResult& result);
// Of a job that recovers; it may have ended by a failure.
std::vector<std::string> broken_promises(const RecoveryResult& result);

}  // namespace muster::cluster::sim
