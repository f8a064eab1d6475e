#include "muster/cluster/scheduler/telling.h"

#include "muster/cluster/scheduler/job.h"

namespace muster::cluster {
namespace {

constexpr auto telling_time = std::chrono::seconds(1);

}  // namespace

Telling::Telling(Job& job) : Phase(job), until_(job.now + telling_time) {
  const auto& failure = job_.ledger.failure;
  // A job without a roster has done nothing that is worth going on with, unless its log was lost: that it was
  // done is kept then, and who goes on with it otherwise are its processes.
  if (job_.config.recovers && !job_.ledger.roster && !failure) job_.record_job();
  if (job_.config.recovers && (job_.ledger.roster || !failure)) job_.record(record::Ended{failure});
  for (const auto& [id, peer] : job_.peers) {
    if (!peer.has_left() && peer.is_connected()) job_.send(id, message::Ended{failure});
    if (!peer.is_gone()) untold_.insert(id);
  }
}

std::string Telling::text() const {
  return job_.ledger.failure ? job_.ledger.failure->message : "all workers are done";
}

void Telling::check() {
  if (job_.now >= until_) untold_.clear();
}

void Telling::settle() {
  if (!untold_.empty()) return;
  is_over_ = true;
  job_.actions.push_back(scheduler_action::End{job_.ledger.failure});
}

Verdict Telling::place(const Newcomer& newcomer) {
  return job_.seating.turn_away(newcomer, job_.why_ended());
}

void Telling::came_back(PeerId before, PeerId id, Peer& peer, const Message&) {
  untold_.erase(before);
  if (!peer.has_left()) untold_.insert(id);
  job_.send(id, message::Ended{job_.ledger.failure});
}

// Another one that died with it: its end is no news.
void Telling::died(PeerId id, Peer&, const std::string&) { told(id); }

}  // namespace muster::cluster
