// Short runs of small jobs in which everything is drawn from a seed: who comes when, and what goes wrong with
// processes, the scheduler and the network (drop, delay, reorder, duplicate, partitions of both ways or of
// one, crash, restart, replay).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::cluster::sim {

struct ScheduleResult {
  bool formed = false;
  bool ended_well = false;
  std::uint64_t epochs = 0;
  std::vector<std::string> broken = {};  // promises (promises.h)
};

// The same seed gives the same run. Every other job recovers.
ScheduleResult run_schedule(std::uint64_t seed);

}  // namespace muster::cluster::sim
