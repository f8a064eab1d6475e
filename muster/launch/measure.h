// The way between this process and another one that answers Echo.
#pragma once

#include "muster/cluster/cluster.h"

namespace muster::launch {

struct Way {
  Duration round_trip{};  // the middle one of some
  Duration slowest{};
  Duration clock_ahead{};      // of the other side, in front of ours
  double bits_per_second = 0;  // each way, both at once
};

// Two seconds and two megabytes at most.
Result<Way> measure(cluster::Visit& visit, const Clock& clock);

}  // namespace muster::launch
