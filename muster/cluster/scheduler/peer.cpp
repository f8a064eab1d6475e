#include "muster/cluster/scheduler/peer.h"

#include <fmt/format.h>

namespace muster::cluster {

// In a reason, the launcher finds the process that failed by this (muster/launch/verdict.cpp).
std::string describe(const Peer& peer) {
  const Member& member = peer.member;
  const auto rank = peer.has_rank ? fmt::format(" {}", member.rank) : std::string();
  return fmt::format("{}{} (node '{}' at {}, pid {})", to_string(member.role), rank, member.node_id,
                     member.address, member.pid);
}

}  // namespace muster::cluster
