// Stuck-job report: what every process is at, for all of them, when the job does not go on.
#pragma once

#include <optional>
#include <string>

#include "muster/cluster/messages.h"
#include "muster/cluster/stuck_watch.h"

namespace muster::cluster {

class Job;
struct Peer;

class StuckReport {
 public:
  explicit StuckReport(Job& job);

  void begin_epoch();
  void note(Peer& peer, const message::Beat& beat, std::uint64_t epoch);
  void check();
  void forgive(Duration pause) { watch_.forgive(pause); }
  // Since something was finished.
  Duration pause() const;

 private:
  std::optional<WorkPhase> slowest_phase() const;
  std::string who_waits_for_whom() const;

  Job& job_;
  StuckWatch watch_;
};

}  // namespace muster::cluster
