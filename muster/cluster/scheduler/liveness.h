// Liveness: which processes of the job are dead. It weighs what is known of each: its connection, its
// heartbeats, its process where that is watched, and what others report of it.
#pragma once

#include <optional>

#include "muster/cluster/messages.h"
#include "muster/cluster/seats.h"

namespace muster::cluster {

class Job;
struct Peer;

class Liveness {
 public:
  explicit Liveness(Job& job) : job_(job) {}

  TimePoint deadline() const { return next_doubt_.value_or(TimePoint::max()); }
  // Whom nothing was heard of for too long. Several may be dead at once; without recovery the first one ends
  // the job.
  void check();

  // Its process is watched, where that can be seen from here.
  void watch(PeerId id, Peer& peer);
  // A member that a restarted scheduler does not know yet may live, and come back.
  void expect(Seat& seat);
  void heard(Peer& peer);
  void came_back(Peer& peer);
  void closed(PeerId id, Peer& peer);
  // The process that is watched under that number.
  void exited(PeerId watch_id, const WaitStatus& status);
  void reported(const Peer& reporter, const message::PeerGone& gone);
  bool doubts_someone() const;
  // The scheduler itself was stopped for so long; what the nodes said meanwhile may not have been read yet.
  void forgive(Duration pause);

 private:
  void exited(PeerId id, Peer& peer, const WaitStatus& status);
  void reported(PeerId id, Peer& peer, const WaitStatus& status);
  void disprove_report(Peer& peer);
  void doubt(Peer& peer, Duration time);

  Job& job_;
  std::optional<TimePoint> next_doubt_ = {};
};

// What is told of it.
Failure death_of(const Job& job, const Peer& peer, const std::string& how);

}  // namespace muster::cluster
