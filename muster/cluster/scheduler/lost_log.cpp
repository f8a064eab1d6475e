#include "muster/cluster/scheduler/lost_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "muster/cluster/scheduler/job.h"
#include "muster/cluster/scheduler/running.h"

namespace muster::cluster {

LostLog::LostLog(Job& job, const Message& message, const message::Register& first) : job_(job) {
  Ledger& ledger = job_.ledger;
  ledger.job_id = message.job_id;
  ledger.seed = first.memory.seed;
  ledger.epoch = message.epoch;
  ledger.epoch_min = job_.config.adopted_epoch;
  ledger.is_recorded = false;
  job_.enter(std::make_unique<Running>(job_));
  job_.seats = Seats(job_.config.worker_num, job_.config.server_num);
  known_members_.assign(job_.seats.all().size(), 0);
  for (Seat& seat : job_.seats.all()) job_.liveness.expect(seat);
  job_.log(log::Level::warning,
           fmt::format("there is no log of job {:016x}, and its processes live: it goes on from what they "
                       "say, which is epoch {} so far",
                       ledger.job_id, ledger.epoch));
}

bool LostLog::is_rebuilt() {
  if (job_.ledger.roster != nullptr) return true;
  if (!job_.is(JobState::running) || std::ranges::any_of(job_.seats.all(), &Seat::is_unknown)) return false;
  rebuild();
  return true;
}

// A living member takes the seat that no log names as its own.
void LostLog::claim(const Newcomer& self, const Message& message, const message::Register& request,
                    Seat& seat) {
  if (was_given_up(self.member, job_.seats.place(self.member.role, self.member.rank)))
    return job_.turn_down(
        self.id, self.member,
        fmt::format("it is of epoch {}, and its place was taken by another process in epoch {}",
                    request.memory.roster_epoch, known_epoch_));
  if (seat.peer != 0) job_.forget(seat.peer);
  seat.is_unknown = false;
  seat.is_claimed = true;
  seat.member = self.member;
  seat.key = self.key;
  seat.peer = self.id;
  Peer& peer = job_.accept(self.id, self);
  peer.has_rank = true;
  peer.said.epoch = peer.epoch_accepted = peer.epoch_member = message.epoch;
  job_.ledger.finished_calls = std::max(job_.ledger.finished_calls, request.memory.finished_calls);
  claimed_calls_ = request.memory.finished_calls;
  claimed_collectives_ = request.memory.finished_collectives;
  if (job_.is(JobState::recovering)) return job_.tell_of_epoch(self.id, peer);
  if (request.epoch_lost || message.epoch < job_.ledger.epoch) job_.phase().lose_epoch(reason());
}

Failure LostLog::reason() const {
  return {Code::peer_lost, fmt::format("epoch {} was lost before the scheduler's log was", job_.ledger.epoch),
          exit_code_peer_lost};
}

// While the log is rebuilt: the newest roster that any member has says whose the seats are. Who claimed one
// before that, and was given up in an epoch that it has not heard of, had no part in what was done since.
void LostLog::learn_members(const Message& message, const message::Register& request) {
  if (job_.ledger.roster != nullptr) return;  // it is known
  const MembershipReport& memory = request.memory;
  const std::size_t count = known_members_.size();
  const std::size_t own = job_.seats.place(request.member.role, request.member.rank);
  const bool is_sound = own < count && !memory.incarnations.empty() && memory.incarnations.size() <= count &&
                        memory.incarnations.front() == request.member.incarnation &&
                        memory.roster_epoch <= message.epoch;
  if (message.epoch > job_.ledger.epoch) {
    job_.ledger.epoch = message.epoch;
    job_.phase().lose_epoch(reason());
  }
  if (!is_sound || memory.roster_epoch < known_epoch_) return;
  if (memory.roster_epoch > std::exchange(known_epoch_, memory.roster_epoch)) known_members_.assign(count, 0);
  for (std::size_t i = 0; i < memory.incarnations.size(); ++i)
    known_members_[(own + i) % count] = memory.incarnations[i];
  for (std::size_t i = 0; i < count; ++i)
    if (Seat& seat = job_.seats.all()[i]; seat.is_claimed && was_given_up(seat.member, i)) void_claim(seat);
}

bool LostLog::was_given_up(const Member& member, std::size_t place) const {
  return known_members_[place] != 0 && known_members_[place] != member.incarnation;
}

// Even a goodbye on that seat was of another epoch. The one whose it is may come.
void LostLog::void_claim(Seat& seat) {
  job_.log(
      log::Level::warning,
      fmt::format("{} {} (node '{}' at {}, pid {}) was given up before epoch {} began, of which others are",
                  to_string(seat.member.role), seat.member.rank, seat.member.node_id, seat.member.address,
                  seat.member.pid, known_epoch_));
  if (seat.member.has_left && seat.member.role == Role::worker) --job_.ledger.workers_left;
  if (const PeerId id = job_.peers.find_process(seat.member, seat.key); id != 0) {
    if (!job_.peers.at(id).has_left())
      job_.send(id, message::Refuse{{Code::refused,
                                     fmt::format("the scheduler refused this process: its place was taken by "
                                                 "another process in epoch {}",
                                                 known_epoch_),
                                     exit_code_refused}});
    job_.forget(id);
  }
  seat = Seats::unknown(seat.member.role, seat.member.rank);
  job_.liveness.expect(seat);
}

// All members of the epoch are there: its roster is known again, and no process had to stop.
void LostLog::rebuild() {
  Ledger& ledger = job_.ledger;
  auto roster = std::make_shared<Roster>();
  roster->epoch = ledger.epoch;
  roster->job_id = ledger.job_id;
  roster->seed = ledger.seed;
  roster->workers = job_.seats.members(Role::worker);
  roster->servers = job_.seats.members(Role::server);
  for (auto* members : {&roster->workers, &roster->servers})
    for (Member& member : *members) member.has_left = false;  // not before the epoch began
  roster->recovers = true;
  roster->finished_calls = claimed_calls_;
  roster->finished_collectives = claimed_collectives_;
  job_.take_roster(std::move(roster));
  job_.record_job();
  job_.record(record::Formed{ledger.roster, job_.seats.keys()});
  if (ledger.finished_calls > claimed_calls_) job_.record(record::Finished{ledger.finished_calls});  // since
  for (const Seat& seat : job_.seats.all()) {
    if (!seat.member.has_left) continue;
    job_.record(record::Left{seat.member.role, seat.member.rank});
    if (seat.member.role == Role::worker) ledger.left_in_epoch = seat.member.rank;
  }
  job_.log(log::Level::warning, fmt::format("all processes of epoch {} are known again", ledger.epoch));
}

}  // namespace muster::cluster
