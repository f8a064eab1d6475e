// Slow-rank report: takes what the workers say of themselves with their heartbeats, and tells people once
// whom the others wait for.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "muster/cluster/messages.h"
#include "muster/cluster/slow_watch.h"

namespace muster::cluster {

class Job;
struct Peer;

class SlowReport {
 public:
  explicit SlowReport(Job& job) : job_(job) {}

  void note(Peer& peer, const message::Beat& beat, std::uint64_t epoch);
  void clear() { watch_.clear(); }
  const std::vector<SlowRank>& slow() const { return watch_.slow(); }

 private:
  void look();

  Job& job_;
  SlowWatch watch_;
  std::set<std::pair<std::uint32_t, SlowCause>> told_;
};

}  // namespace muster::cluster
