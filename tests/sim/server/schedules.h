// Short runs of small jobs with parameter servers in which everything is drawn from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/server/simulator.h"

namespace muster::server::sim {

RunResult run_schedule(std::uint64_t seed);

// The same with as few faults as break a promise, and what happens in it, line by line.
std::vector<std::string> explain(std::uint64_t seed);

}  // namespace muster::server::sim
