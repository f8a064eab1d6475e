#include "muster/cluster/scheduler/status.h"

#include <algorithm>
#include <utility>

#include "muster/cluster/scheduler/job.h"
#include "muster/cluster/wire.h"

namespace muster::cluster {
namespace {

std::chrono::milliseconds whole(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

}  // namespace

Duration silence_of(const Job& job, const Peer& peer) { return job.now - std::max(peer.spoke, job.start); }

message::Status status_of(const Job& job) {
  message::Status status{.state = job.phase().state(),
                         .recovers = job.config.recovers,
                         .worker_num = job.config.worker_num,
                         .server_num = job.config.server_num,
                         .age = whole(job.now - job.start),
                         .text = job.phase().text()};
  if (job.is(JobState::running)) status.without_step = whole(job.stuck.pause());
  status.slow = job.slow.slow();
  for (const auto& [id, peer] : job.peers) {
    if (status.nodes.size() == status_nodes_max) break;
    status.nodes.push_back({.role = peer.member.role,
                            .node_id = peer.member.node_id,
                            .rank = peer.member.rank,
                            .address = peer.member.address,
                            .pid = peer.member.pid,
                            .has_rank = peer.has_rank,
                            .is_connected = peer.is_connected(),
                            .has_left = peer.has_left(),
                            .epoch = peer.said.epoch,
                            .step = peer.said.step,
                            .activity = peer.said.activity,
                            .silence = whole(silence_of(job, peer)),
                            .stats = peer.said.stats,
                            .pace = peer.said.pace.pace()});
  }
  std::stable_sort(status.nodes.begin(), status.nodes.end(), [](const auto& a, const auto& b) {
    return std::pair(a.role, a.rank) < std::pair(b.role, b.rank);
  });
  return status;
}

}  // namespace muster::cluster
