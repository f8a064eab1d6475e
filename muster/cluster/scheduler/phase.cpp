#include "muster/cluster/scheduler/phase.h"

#include "muster/cluster/scheduler/job.h"

namespace muster::cluster {

const Member* Phase::holder(const Member& member) const {
  const Seat* seat = job_.seats.find(member.role, member.node_id);
  return seat != nullptr && !seat->member.has_left ? &seat->member : nullptr;
}

std::string Phase::duplicate_id(const Member& holder) const { return "duplicate id: " + taken_by(holder); }

std::optional<std::string> Phase::admit(PeerId, Registrant registrant) {
  const Role role = registrant.member.role;
  return surplus(role, job_.wanted(role));
}

Verdict Phase::place(const Newcomer& newcomer) { return job_.seating.place(newcomer); }

void Phase::done(PeerId id, const Peer& peer) {
  if (Seat* seat = job_.seats.find_peer(id)) {
    seat->member.has_left = true;
    seat->peer = 0;
  }
  if (peer.member.role != Role::worker) return;
  job_.ledger.left_in_epoch = peer.member.rank;
  if (++job_.ledger.workers_left == job_.config.worker_num) job_.end();
}

void Phase::died(PeerId id, Peer& peer, const std::string& how) {
  if (job_.config.recovers) return job_.seating.lose(id, how);
  peer.state = PeerState::dead;
  job_.fail(death_of(job_, peer, how));
}

}  // namespace muster::cluster
