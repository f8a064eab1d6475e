// Telling: the job has ended, and its processes are told so.
#pragma once

#include <set>

#include "muster/cluster/scheduler/phase.h"

namespace muster::cluster {

class Telling : public Phase {
 public:
  explicit Telling(Job& job);

  JobState state() const override { return JobState::ended; }
  std::string text() const override;
  TimePoint deadline() const override { return until_; }
  void check() override;
  void settle() override;
  Verdict place(const Newcomer& newcomer) override;
  void came_back(PeerId before, PeerId id, Peer& peer, const Message& message) override;
  void died(PeerId id, Peer& peer, const std::string& how) override;
  void told(PeerId id) override { untold_.erase(id); }
  bool is_over() const override { return is_over_; }

 private:
  const TimePoint until_;  // when waiting for those who do not answer ends
  std::set<PeerId> untold_ = {};
  bool is_over_ = false;
};

}  // namespace muster::cluster
