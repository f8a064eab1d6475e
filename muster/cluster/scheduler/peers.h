// Peers: the processes of the job that the scheduler knows, each under the number of its connection. One that
// registers again on another connection goes on under that number.
#pragma once

#include <limits>
#include <map>
#include <unordered_map>

#include "muster/cluster/scheduler/peer.h"

namespace muster::cluster {

class Peers {
 public:
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

  Peer* find(PeerId id);
  // Of a connection that the scheduler itself has noted: it is taken out of everything when it is removed.
  Peer& at(PeerId id);
  const Peer& at(PeerId id) const;
  Peer& add(PeerId id, Registrant registrant);
  // Of a process that may live, and come back. The number is one that no connection will have.
  PeerId add_awaited(Registrant registrant);
  // It has come on another connection.
  Peer& renumber(PeerId before, PeerId id);
  Peer remove(PeerId id);

  // The process that has proved to be this one; 0: none.
  PeerId find_process(const Member& member, const ProcessKey& key) const;
  const Peer* find_incarnation(std::uint64_t incarnation) const;
  // The connection now of the process that is watched under that number.
  PeerId watched_as(PeerId watch_id) const;

 private:
  std::map<PeerId, Peer> all_;
  std::unordered_map<std::uint64_t, PeerId> by_incarnation_;  // of all that have one
  std::map<PeerId, PeerId> watched_as_;                       // where that is another number
  PeerId next_awaited_ = std::numeric_limits<PeerId>::max();
};

}  // namespace muster::cluster
