#include "muster/cluster/scheduler/running.h"

#include <fmt/format.h>

#include <utility>

#include "muster/cluster/scheduler/job.h"
#include "muster/cluster/scheduler/recovering.h"

namespace muster::cluster {
namespace {

// A broken link is often a death that is about to be reported.
constexpr std::chrono::milliseconds link_doubt_time{300};
constexpr std::uint32_t links_lost_in_a_row_max = 10;

}  // namespace

Running::Running(Job& job) : Phase(job) {
  job_.stuck.begin_epoch();
  job_.slow.clear();
  job_.parameters.begin_epoch();
}

TimePoint Running::deadline() const { return link_lost_until_.value_or(TimePoint::max()); }

void Running::check() {
  if (link_lost_until_ && job_.now >= *link_lost_until_) give_up_link();
  if (job_.is(JobState::running)) job_.stuck.check();
}

void Running::give_up_link() {
  link_lost_until_.reset();
  if (++job_.links_lost_in_a_row > links_lost_in_a_row_max)
    return job_.fail({Code::peer_lost,
                      fmt::format("the workers lost their connections {} times without a step between: {}",
                                  job_.links_lost_in_a_row, link_lost_reason_.message),
                      exit_code_peer_lost});
  job_.log(log::Level::warning, link_lost_reason_.message);
  lose_epoch(link_lost_reason_);
}

void Running::forgive(Duration pause) {
  job_.slow.clear();
  if (link_lost_until_) *link_lost_until_ += pause;
}

void Running::came_back(PeerId, PeerId id, Peer& peer, const Message& message) {
  if (peer.has_left()) {
    peer.state = PeerState::returned;
    return;
  }
  const std::uint64_t epoch = job_.ledger.epoch;
  const bool knows_roster = message.job_id != 0;
  if (std::get<message::Register>(message.body).epoch_lost && message.epoch == epoch)
    lose_epoch({Code::peer_lost, fmt::format("epoch {} was lost before the scheduler died", epoch),
                exit_code_peer_lost});
  else if (!knows_roster || message.epoch < epoch)
    job_.tell_of_epoch(id, peer);
}

bool Running::has_missed(const Peer&, std::uint64_t epoch) const { return epoch < job_.ledger.epoch; }

void Running::tell_epoch(PeerId id) {
  if (job_.ledger.roster != nullptr) job_.share(id, job_.ledger.roster_ready);
}

void Running::link_lost(const Peer& peer, const message::LinkLost& lost, std::uint64_t epoch) {
  if (epoch != job_.ledger.epoch || link_lost_until_) return;
  link_lost_until_ = job_.now + link_doubt_time;
  link_lost_reason_ = {Code::peer_lost, fmt::format("{} lost its peers: {}", describe(peer), lost.reason),
                       exit_code_peer_lost};
}

void Running::lose_epoch(Failure reason) {
  job_.enter(std::make_unique<Recovering>(job_, std::move(reason), job_.now));
  for (auto& [id, peer] : job_.peers)
    if (!peer.has_left()) job_.tell_of_epoch(id, peer);
}

}  // namespace muster::cluster
