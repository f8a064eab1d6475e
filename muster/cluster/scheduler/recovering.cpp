#include "muster/cluster/scheduler/recovering.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "muster/cluster/scheduler/found_jobs.h"
#include "muster/cluster/scheduler/job.h"
#include "muster/cluster/scheduler/traits_check.h"

namespace muster::cluster {
namespace {

constexpr std::size_t shown_max = 8;

std::uint64_t collectives_of(const Peer& peer) {
  return peer.said.progress ? peer.said.progress->collectives : 0;
}

}  // namespace

Recovering::Recovering(Job& job, Failure reason, TimePoint lost_at)
    : Phase(job),
      reason_(std::move(reason)),
      lost_at_(lost_at),
      next_progress_(job_.now + progress_interval) {}

// Of the vacant seats; when there are none, of those who live and have not answered.
std::string Recovering::text() const {
  const std::uint64_t next_epoch = job_.ledger.next_epoch();
  if (auto text = job_.seats.waiting_text(next_epoch); !text.empty()) return text + refused_meanwhile();
  std::vector<std::string> silent;
  for (const auto& [id, peer] : job_.peers)
    if (!peer.has_left() && (peer.state != PeerState::ready || !peer.is_connected()))
      silent.push_back(describe(peer));
  silent.resize(std::min(silent.size(), shown_max));
  return silent.empty() ? ""
                        : fmt::format("cluster epoch {}: waiting for an answer of {}", next_epoch,
                                      fmt::join(silent, ", "));
}

// A process that was started again and does not come in is waited for in vain: it says why, and so do we.
std::string Recovering::refused_meanwhile() const {
  const auto vacant = job_.seats.vacant();
  std::map<std::string, int> vacant_at;
  for (const Seat* seat : vacant) ++vacant_at[seat->member.address];
  std::string lines;
  for (std::size_t i = 0; i < std::min(vacant.size(), shown_max); ++i) {
    const Member& member = vacant[i]->member;
    const auto line = refused_for(member, vacant_at[member.address] == 1, job_.attempts, lost_at_, job_.now);
    if (!line.empty()) lines += "\n  " + line;
  }
  return lines;
}

void Recovering::announce_waiting() {
  const std::string waiting = text();
  if (!waiting.empty()) job_.tell_all<message::Waiting>(waiting);
}

bool Recovering::shows_rejection(bool is_news) {
  if (!is_news || refused_meanwhile().empty()) return false;
  vacancies_changed_ = true;  // all are told at once whom they wait for, and why in vain
  return true;
}

// --- time --------------------------------------------------------------------------------------------------

TimePoint Recovering::deadline() const {
  TimePoint next = next_progress_;
  for (const Seat* seat : job_.seats.vacant()) next = std::min(next, seat->wait_until);
  return next;
}

void Recovering::check() {
  for (const Seat* seat : job_.seats.vacant()) {
    if (job_.now < seat->wait_until) continue;
    const auto limit =
        seat->variable == "MS_NODE_TIMEOUT" ? job_.config.node_timeout : job_.config.topo_timeout;
    return job_.fail(
        {Code::peer_lost,
         fmt::format("no process came within {:.3g} s ({}): {}", in_seconds(limit), seat->variable, text()),
         exit_code_peer_lost});
  }
  if (job_.now < next_progress_) return;
  next_progress_ = job_.now + progress_interval;
  announce_waiting();
}

// --- processes ---------------------------------------------------------------------------------------------

void Recovering::came_back(PeerId, PeerId id, Peer& peer, const Message& message) {
  if (peer.has_left()) {
    peer.state = PeerState::returned;
    return;
  }
  const bool knows_roster = message.job_id != 0;
  if (!knows_roster) peer.state = PeerState::ready;  // it has told where it is reached, and no one has tried
  if (peer.state != PeerState::ready) job_.tell_of_epoch(id, peer);
}

bool Recovering::has_missed(const Peer& peer, std::uint64_t) const { return peer.state != PeerState::ready; }

void Recovering::tell_epoch(PeerId id) { job_.send(id, message::EpochLost{reason_}); }

void Recovering::rejoined(PeerId id, Peer& peer, const message::Rejoin& rejoin, std::uint64_t epoch) {
  if (epoch != job_.ledger.epoch || peer.has_left()) return;
  peer.member.data_port = rejoin.endpoint.port;
  peer.member.local_name = rejoin.endpoint.local_name;
  job_.note_progress(peer, rejoin.progress);
  peer.state = PeerState::ready;
  if (Seat* seat = job_.seats.find_peer(id)) seat->member = peer.member;
}

// --- the next epoch ----------------------------------------------------------------------------------------

void Recovering::settle() {
  form_next_if_complete();
  const bool are_news = std::exchange(vacancies_changed_, false) && job_.is(JobState::recovering);
  if (are_news && !job_.seats.vacant().empty()) announce_waiting();
}

void Recovering::form_next_if_complete() {
  std::uint64_t collectives = collectives_of_left();
  for (const Seat& seat : job_.seats.all()) {
    if (seat.member.has_left) continue;
    if (seat.peer == 0) return;
    const Peer& peer = job_.peers.at(seat.peer);
    if (peer.state != PeerState::ready || !peer.is_connected() || peer.doubted_until) return;
    collectives = std::max(collectives, collectives_of(peer));
  }
  if (!a_process_holds_the_job(job_)) return;
  auto roster = std::make_shared<Roster>();
  roster->epoch = job_.ledger.next_epoch();
  roster->job_id = job_.ledger.job_id;
  roster->seed = job_.ledger.seed;
  roster->workers = job_.seats.members(Role::worker);
  roster->servers = job_.seats.members(Role::server);
  roster->recovers = true;
  roster->finished_calls = job_.ledger.finished_calls;
  roster->finished_collectives = collectives;
  if (!check_traits(job_)) return;
  job_.begin_epoch(std::move(roster));
  job_.log(log::Level::warning,
           fmt::format("cluster epoch {}: all are there again, training goes on", job_.ledger.epoch));
}

// As many as a process has passed that will make none again.
std::uint64_t Recovering::collectives_of_left() const {
  std::uint64_t most = 0;
  for (const Seat& seat : job_.seats.all()) {
    if (!seat.member.has_left) continue;
    if (const Peer* peer = job_.peers.find(job_.peers.find_process(seat.member, seat.key)))
      most = std::max(most, collectives_of(*peer));
  }
  return most;
}

}  // namespace muster::cluster
