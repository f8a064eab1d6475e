#include "muster/cluster/scheduler/seating.h"

#include <fmt/format.h>

#include <algorithm>

#include "muster/cluster/scheduler/found_jobs.h"
#include "muster/cluster/scheduler/job.h"
#include "muster/cluster/scheduler/registration.h"
#include "muster/cluster/scheduler/traits_check.h"

namespace muster::cluster {

// --- who registers -----------------------------------------------------------------------------------------

void Seating::register_node(PeerId id, const Message& message, const message::Register& request) {
  const Member& member = request.member;
  const Newcomer self{
      {member, key_of(request.secret, member), request.strict, request.traits, request.memory}, id, job_.now};
  if (auto reason = unusable(job_.config, request)) return job_.turn_down(id, member, *reason);
  // It was done with the others, and the scheduler died before it could say so.
  if (message.job_id != 0 && message.job_id == job_.config.ended_job_id) {
    job_.actions.push_back(scheduler_action::Send{id, {message.job_id, message.epoch, message::Ended{}}});
    return job_.close(id);
  }
  const bool is_member = message.job_id != 0;
  if (is_member && job_.is(JobState::forming) && !adopts_job(id, message, request)) return;
  if (const auto reason = unfit(message)) return job_.turn_down(id, member, *reason);
  // On a connection of before, or what it said before on this one.
  std::erase_if(newcomers_, [&](const Newcomer& other) { return other.key == self.key || other.id == id; });
  if (const auto reason = impersonation(member, self.key)) return job_.turn_down(id, member, *reason);
  if (is_member && lost_log_ && !job_.is(JobState::ended)) lost_log_->learn_members(message, request);
  if (const PeerId before = job_.peers.find_process(member, self.key); before != 0)
    return come_back(before, id, message, request);
  if (job_.is(JobState::ended)) return job_.turn_down(id, member, job_.why_ended());
  if (is_member) return take_own_seat(self, message, request);
  if (!refuses_foreign_points(job_, id, member, request.memory)) add(self);
}

// Why a process that says of which job and epoch it is can be none of this job.
std::optional<std::string> Seating::unfit(const Message& message) const {
  const Ledger& ledger = job_.ledger;
  if (message.job_id != 0 && message.job_id != ledger.job_id)
    return fmt::format("it belongs to job {:016x}, and this is job {:016x}", message.job_id, ledger.job_id);
  const bool is_known = ledger.roster != nullptr || job_.is(JobState::forming);
  if (message.epoch > ledger.epoch && is_known)
    return fmt::format(
        "it belongs to epoch {}, and the newest that the scheduler knows is {}: is "
        "its MS_RECOVERY_PATH the one of before?",
        message.epoch, ledger.epoch);
  return std::nullopt;
}

// Members find themselves, and each other, in a roster by the incarnation: it is one process's for ever.
std::optional<std::string> Seating::impersonation(const Member& member, const ProcessKey& key) const {
  const auto is_it = [&](const auto& holder) {
    return holder.member.incarnation == member.incarnation && holder.key != key;
  };
  const auto is_taken = [&] {
    const Peer* peer = job_.peers.find_incarnation(member.incarnation);
    return (peer != nullptr && is_it(*peer)) || std::ranges::any_of(newcomers_, is_it) ||
           std::ranges::any_of(job_.seats.all(), is_it);
  };
  if (member.incarnation == 0 || !is_taken()) return std::nullopt;
  return "it says that it is a process that has registered before, and does not know what only that one "
         "knows";
}

// The same process on another connection.
void Seating::come_back(PeerId before, PeerId id, const Message& message, const message::Register& request) {
  Peer& peer = job_.peers.renumber(before, id);
  if (peer.is_connected()) job_.close(before);
  if (Seat* seat = job_.seats.find_peer(before)) seat->peer = id;
  job_.liveness.came_back(peer);
  job_.greet(id, peer);
  peer.strict = request.strict;
  peer.traits = request.traits;
  job_.phase().came_back(before, id, peer, message);
}

// It has a roster, and it was given up. Its seat is its own again, unless another process has it.
void Seating::take_own_seat(const Newcomer& self, const Message& message, const message::Register& request) {
  const Member& member = self.member;
  if (Seat* unknown = job_.seats.find_unknown(member.role, member.rank))
    return lost_log_->claim(self, message, request, *unknown);
  Seat* seat = job_.seats.find(self.key);
  if (seat != nullptr && seat->member.has_left) {  // it was done, and has not heard that this was noted
    Peer& peer = job_.accept(self.id, {.member = seat->member, .key = self.key});
    peer.state = PeerState::left;
    peer.has_rank = true;
    peer.epoch_accepted = peer.epoch_member = message.epoch;
    return;
  }
  if (seat == nullptr || !seat->is_vacant()) {
    const Seat* now = seat != nullptr ? seat : job_.seats.find(member.role, member.node_id);
    return job_.turn_down(
        self.id, member,
        fmt::format(
            "it is of epoch {}, and its place was taken by another process{}; this is "
            "epoch {}",
            message.epoch,
            now == nullptr ? "" : fmt::format(" (at {}, pid {})", now->member.address, now->member.pid),
            job_.ledger.epoch));
  }
  Peer& peer = sit(self, *seat, false);
  peer.epoch_accepted = peer.epoch_member = message.epoch;
}

// --- who waits for a seat ----------------------------------------------------------------------------------

void Seating::add(const Newcomer& newcomer) {
  newcomers_.push_back(newcomer);
  if (job_.phase().place(newcomers_.back()) == Verdict::decided) return newcomers_.pop_back();
  job_.send(
      newcomer.id,
      message::Waiting{"waiting for a word of the process in whose place this one comes, or for its end"});
}

void Seating::settle() {
  std::erase_if(newcomers_,
                [&](const Newcomer& newcomer) { return job_.phase().place(newcomer) == Verdict::decided; });
  if (lost_log_ && lost_log_->is_rebuilt()) lost_log_.reset();
}

TimePoint Seating::deadline() const {
  TimePoint next = TimePoint::max();
  for (const Newcomer& newcomer : newcomers_)
    if (const TimePoint due = newcomer.since + contest_time(); due > job_.now) next = std::min(next, due);
  return next;
}

void Seating::forgive() {
  for (Newcomer& newcomer : newcomers_) newcomer.since = job_.now;
}

void Seating::closed(PeerId id) {
  std::erase_if(newcomers_, [&](const Newcomer& newcomer) { return newcomer.id == id; });
}

bool Seating::hears(PeerId id, const Message& message) {
  if (std::ranges::find(newcomers_, id, &Newcomer::id) == newcomers_.end()) return false;
  if (std::holds_alternative<message::Beat>(message.body)) job_.send(id, message::Beat{});
  if (std::holds_alternative<message::Leave>(message.body)) job_.send(id, message::LeaveAck{});
  return true;
}

Verdict Seating::place(const Newcomer& newcomer) {
  const auto choice = job_.seats.choose(newcomer.member);
  if (const auto* reason = std::get_if<std::string>(&choice)) return turn_away_once_sure(newcomer, *reason);
  Seat& seat = *std::get<Seat*>(choice);
  // Who was done may be started again with the others; alone it has nothing to do.
  if (seat.member.has_left && !job_.is(JobState::recovering))
    return turn_away_once_sure(newcomer, fmt::format("{} {} was done and has left the job",
                                                     to_string(seat.member.role), seat.member.rank));
  if (seat.peer != 0) return contest(seat.peer, newcomer);
  if (const auto reason = misfit(job_, newcomer)) return turn_away(newcomer, *reason);
  sit(newcomer, seat, true);
  return Verdict::decided;
}

Duration Seating::contest_time() const {
  return 2 * beat_interval_for(job_.config.node_timeout) + std::chrono::milliseconds(250);
}

// Two processes for one seat: the one that sits there keeps it if it says a word within two beats.
Verdict Seating::contest(PeerId stale_id, const Newcomer& newcomer) {
  const Peer& stale = job_.peers.at(stale_id);
  const Duration beat = beat_interval_for(job_.config.node_timeout);
  if (stale.spoke >= newcomer.since + beat / 2)
    return turn_away(newcomer, job_.phase().duplicate_id(stale.member));
  if (job_.now - newcomer.since < contest_time()) return Verdict::waits;
  job_.send(stale_id,
            message::Refuse{{Code::refused,
                             fmt::format("the scheduler refused this process: a newer one took its place "
                                         "(at {}, pid {}), since it did not answer",
                                         newcomer.member.address, newcomer.member.pid),
                             exit_code_refused}});
  lose(stale_id, "it did not answer, and a newer process took its place");
  return job_.phase().place(newcomer);
}

Verdict Seating::turn_away(const Newcomer& newcomer, const std::string& reason) {
  job_.turn_down(newcomer.id, newcomer.member, reason);
  return Verdict::decided;
}

Verdict Seating::turn_away_once_sure(const Newcomer& newcomer, const std::string& reason) {
  return job_.liveness.doubts_someone() ? Verdict::waits : turn_away(newcomer, reason);
}

// `is_ready`: it has said where it will be reached in the next epoch.
Peer& Seating::sit(const Newcomer& newcomer, Seat& seat, bool is_ready) {
  Registrant registrant = newcomer;
  Member& member = registrant.member;
  if (std::exchange(seat.member.has_left, false) && seat.member.role == Role::worker)
    --job_.ledger.workers_left;
  member.rank = seat.member.rank;
  if (seat.member.is_named && !member.is_named) {
    member.node_id = seat.member.node_id;
    member.is_named = true;
  }
  seat.member = member;
  seat.is_unknown = seat.is_claimed = false;
  seat.key = newcomer.key;
  seat.peer = newcomer.id;
  Peer& peer = job_.accept(newcomer.id, std::move(registrant));
  peer.has_rank = true;
  if (is_ready) {
    peer.state = PeerState::ready;
    peer.epoch_member = job_.ledger.epoch + 1;
  } else {
    job_.tell_of_epoch(newcomer.id, peer);
  }
  job_.phase().note_vacancy();
  return peer;
}

// --- who is lost -------------------------------------------------------------------------------------------

// The process is gone; its seat is vacant.
void Seating::lose(PeerId id, const std::string& how) {
  const Peer& peer = job_.peers.at(id);
  const Failure death = death_of(job_, peer, how);
  job_.log(log::Level::warning, death.message);
  Seat* seat = job_.seats.find_peer(id);
  if (seat != nullptr) {
    const SchedulerConfig& config = job_.config;
    // Where the scheduler itself was dead, everything may have been: people start it all again.
    const bool is_long =
        peer.connection == PeerConnection::awaited && config.topo_timeout > config.node_timeout;
    seat->how = how;
    seat->step = peer.said.step;
    seat->wait_until = job_.now + (is_long ? config.topo_timeout : config.node_timeout);
    seat->variable = is_long ? "MS_TOPO_TIMEOUT" : "MS_NODE_TIMEOUT";
  }
  job_.forget(id);
  if (seat == nullptr) return;
  job_.phase().lose_epoch(death);
  job_.phase().note_vacancy();
}

// --- the log is lost ---------------------------------------------------------------------------------------

// No log says anything of a job, and here is a living member of one. Who came for the first epoch waits for a
// seat that is vacant. False: the job has failed.
bool Seating::adopts_job(PeerId id, const Message& message, const message::Register& request) {
  if (job_.config.fresh) {
    job_.fail(
        {Code::refused,
         fmt::format(
             "MUSTER_FRESH=1 would give job {:016x} up, and {} {} (node '{}' at {}, pid {}) lives and is "
             "in epoch {} of it: unset MUSTER_FRESH to go on with it, or end its processes first",
             message.job_id, to_string(request.member.role), request.member.rank, request.member.node_id,
             request.member.address, request.member.pid, message.epoch),
         exit_code_refused});
    job_.close(id);
    return false;
  }
  const std::vector<PeerId> registered = job_.phase().registered();
  lost_log_.emplace(job_, message, request);
  add_those_who_formed(registered);
  return true;
}

void Seating::add_those_who_formed(const std::vector<PeerId>& registered) {
  for (const PeerId id : registered) {
    const Peer peer = job_.peers.remove(id);
    if (!peer.is_connected() || peer.process.state == ProcessState::exited ||
        refuses_foreign_points(job_, id, peer.member, peer.memory))
      continue;
    newcomers_.push_back({peer, id, job_.now});
    job_.send(id, message::Waiting{"waiting for a vacant place among the processes of the job that live"});
  }
}

}  // namespace muster::cluster
