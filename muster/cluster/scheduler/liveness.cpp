#include "muster/cluster/scheduler/liveness.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "muster/cluster/scheduler/job.h"

namespace muster::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How long a process that cannot be watched may take to make its connection again.
constexpr milliseconds reconnect_time{300};

// A heartbeat of a process that lives is here so long after it is due.
constexpr milliseconds word_time{250};

// In which processes that live find a scheduler that was started again. They try at least every second.
// This is not waited for on a host where processes can be seen: one that has ended is seen at once, and a pid
// that means another process by now is found out in the end.
constexpr milliseconds return_time = seconds(5);
constexpr milliseconds return_time_watched = seconds(8);

}  // namespace

Failure death_of(const Job& job, const Peer& peer, const std::string& how) {
  const auto step = peer.said.step == no_step ? std::string("it had reported no step")
                                              : fmt::format("its last known step was {}", peer.said.step);
  const auto when = job.is(JobState::forming) ? " before every process had come" : "";
  return {Code::peer_lost, fmt::format("{} is gone{}: {}; {}", describe(peer), when, how, step),
          exit_code_peer_lost};
}

void Liveness::check() {
  next_doubt_.reset();
  std::vector<std::pair<PeerId, std::string>> dead;
  for (const auto& [id, peer] : job_.peers) {
    if (peer.has_left()) continue;
    if (peer.doubted_until && job_.now >= *peer.doubted_until) {
      dead.emplace_back(id,
                        peer.seems_ended() ? how_it_ended(peer.process.status) : "its connection was lost");
    } else if (job_.now - peer.heard >= job_.config.node_timeout) {
      dead.emplace_back(id, fmt::format("no heartbeat came for {:.3g} s (MS_NODE_TIMEOUT)",
                                        in_seconds(job_.config.node_timeout)));
    } else if (peer.doubted_until) {
      next_doubt_ = std::min(deadline(), *peer.doubted_until);
    }
  }
  for (const auto& [id, how] : dead)
    if (Peer* peer = job_.peers.find(id)) job_.phase().died(id, *peer, how);
}

void Liveness::watch(PeerId id, Peer& peer) {
  if (!shares_pids(peer.member.process_space, job_.config.process_space) || peer.member.pid <= 0) return;
  peer.process.watch_id = id;
  job_.actions.push_back(scheduler_action::Watch{id, peer.member.pid});
}

void Liveness::expect(Seat& seat) {
  seat.peer = job_.peers.add_awaited({.member = seat.member, .key = seat.key});
  Peer& peer = job_.peers.at(seat.peer);
  peer.has_rank = true;
  peer.heard = job_.now;
  watch(seat.peer, peer);
  doubt(peer, peer.is_watched() ? return_time_watched : return_time);
}

// Last words that are under way are no sign of life.
void Liveness::heard(Peer& peer) {
  peer.heard = peer.spoke = job_.now;
  if (job_.now > peer.process.reported_at + last_words_time) disprove_report(peer);
}

void Liveness::came_back(Peer& peer) {
  peer.connection = PeerConnection::open;
  if (peer.process.state != ProcessState::exited) peer.doubted_until.reset();
  disprove_report(peer);
}

void Liveness::closed(PeerId id, Peer& peer) {
  peer.connection = PeerConnection::closed;
  if (peer.has_left() || job_.is(JobState::ended)) return;
  if (peer.seems_ended()) return job_.phase().died(id, peer, how_it_ended(peer.process.status));
  if (job_.config.recovers) {  // a process that lives makes its connection again
    if (!peer.is_watched()) doubt(peer, reconnect_time);
    return;
  }
  // A watched process that was killed is about to be reported as such: worth a moment for the better message.
  if (peer.is_watched()) return doubt(peer, last_words_time);
  job_.phase().died(id, peer, "its connection was lost");
}

void Liveness::exited(PeerId watch_id, const WaitStatus& status) {
  const PeerId id = job_.peers.watched_as(watch_id);
  if (Peer* peer = job_.peers.find(id)) exited(id, *peer, status);
}

void Liveness::exited(PeerId id, Peer& peer, const WaitStatus& status) {
  if (!peer.process.status) peer.process.status = status;
  const bool is_news = std::exchange(peer.process.state, ProcessState::exited) != ProcessState::exited;
  if (!is_news || peer.has_left() || job_.is(JobState::ended)) return;
  // Its connection may hold a last word, or be held open by a child that it forked.
  if (peer.is_connected())
    doubt(peer, last_words_time);
  else
    job_.phase().died(id, peer, how_it_ended(peer.process.status));
}

void Liveness::reported(const Peer& reporter, const message::PeerGone& gone) {
  const Seat* seat = job_.seats.find(gone.role, gone.rank);
  if (seat == nullptr || seat->peer == 0) return;
  Peer& peer = job_.peers.at(seat->peer);
  if (peer.member.incarnation != gone.incarnation) return;  // another process has the seat since
  // Only a process that sees the same pids can know.
  if (shares_pids(peer.member.process_space, reporter.member.process_space))
    reported(seat->peer, peer, gone.status);
}

// What one process says of another is no proof: that one's connection ends, or it is silent.
void Liveness::reported(PeerId id, Peer& peer, const WaitStatus& status) {
  if (!peer.is_connected()) return exited(id, peer, status);
  if (peer.seems_ended() || peer.has_left() || job_.is(JobState::ended)) return;
  peer.process.state = ProcessState::reported;
  peer.process.status = status;
  peer.process.reported_at = job_.now;
  doubt(peer, last_words_time + beat_interval_for(job_.config.node_timeout) + word_time);
}

void Liveness::disprove_report(Peer& peer) {
  if (peer.process.state != ProcessState::reported) return;
  peer.process.state = ProcessState::lives;
  peer.process.status.reset();
  peer.doubted_until.reset();
}

void Liveness::doubt(Peer& peer, Duration time) {
  const TimePoint until = job_.now + time;
  peer.doubted_until = std::min(peer.doubted_until.value_or(until), until);
  next_doubt_ = std::min(deadline(), until);
}

bool Liveness::doubts_someone() const {
  return std::ranges::any_of(job_.peers,
                             [](const auto& entry) { return entry.second.doubted_until.has_value(); });
}

void Liveness::forgive(Duration pause) {
  for (auto& [id, peer] : job_.peers) {
    peer.heard = job_.now;
    if (peer.doubted_until) *peer.doubted_until += pause;
  }
}

}  // namespace muster::cluster
