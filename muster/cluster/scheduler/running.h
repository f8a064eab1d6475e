// Running: an epoch has begun, and its processes train.
#pragma once

#include "muster/cluster/scheduler/phase.h"

namespace muster::cluster {

class Running : public Phase {
 public:
  explicit Running(Job& job);

  JobState state() const override { return JobState::running; }
  TimePoint deadline() const override;
  void check() override;
  void forgive(Duration pause) override;
  void came_back(PeerId before, PeerId id, Peer& peer, const Message& message) override;
  bool has_missed(const Peer& peer, std::uint64_t epoch) const override;
  void tell_epoch(PeerId id) override;
  void link_lost(const Peer& peer, const message::LinkLost& lost, std::uint64_t epoch) override;
  void lose_epoch(Failure reason) override;

 private:
  void give_up_link();

  std::optional<TimePoint> link_lost_until_ = {};  // a death may explain it
  Failure link_lost_reason_ = {};
};

}  // namespace muster::cluster
