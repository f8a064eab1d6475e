#include "muster/cluster/scheduler/peers.h"

#include <utility>

namespace muster::cluster {

Peer* Peers::find(PeerId id) {
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : &found->second;
}

Peer& Peers::at(PeerId id) {
  Peer* found = find(id);
  MUSTER_CHECK(found != nullptr, "a connection that is gone was not forgotten everywhere");
  return *found;
}

const Peer& Peers::at(PeerId id) const { return const_cast<Peers*>(this)->at(id); }

Peer& Peers::add(PeerId id, Registrant registrant) {
  if (registrant.member.incarnation != 0) by_incarnation_[registrant.member.incarnation] = id;
  return all_[id] = {std::move(registrant)};
}

PeerId Peers::add_awaited(Registrant registrant) {
  const PeerId id = next_awaited_--;
  add(id, std::move(registrant)).connection = PeerConnection::awaited;
  return id;
}

Peer& Peers::renumber(PeerId before, PeerId id) {
  auto entry = all_.extract(before);
  entry.key() = id;
  Peer& peer = all_.insert(std::move(entry)).position->second;
  by_incarnation_[peer.member.incarnation] = id;
  if (peer.is_watched()) watched_as_[peer.process.watch_id] = id;
  return peer;
}

Peer Peers::remove(PeerId id) {
  Peer peer = std::move(all_.extract(id).mapped());
  const auto process = by_incarnation_.find(peer.member.incarnation);
  if (process != by_incarnation_.end() && process->second == id) by_incarnation_.erase(process);
  watched_as_.erase(peer.process.watch_id);
  return peer;
}

PeerId Peers::find_process(const Member& member, const ProcessKey& key) const {
  const auto found = by_incarnation_.find(member.incarnation);
  return found != by_incarnation_.end() && at(found->second).key == key ? found->second : 0;
}

const Peer* Peers::find_incarnation(std::uint64_t incarnation) const {
  const auto found = by_incarnation_.find(incarnation);
  return found == by_incarnation_.end() ? nullptr : &at(found->second);
}

PeerId Peers::watched_as(PeerId watch_id) const {
  const auto found = watched_as_.find(watch_id);
  return found == watched_as_.end() ? watch_id : found->second;
}

}  // namespace muster::cluster
