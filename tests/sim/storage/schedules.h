// Short runs of small jobs in which everything is drawn from a seed: workers, disks, calls, and what goes
// wrong with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/storage/simulator.h"

namespace muster::train::sim {

RunResult run_schedule(std::uint64_t seed);

// The same with as few faults as break a promise, and what happens in it, line by line.
std::vector<std::string> explain(std::uint64_t seed);

}  // namespace muster::train::sim
