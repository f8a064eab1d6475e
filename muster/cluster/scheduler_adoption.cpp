// Which job it is, where the scheduler has lost its log: that of the processes that live, else that whose
// recovery points the workers have found. And what is an error instead of a silent new begin.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "muster/cluster/scheduler.h"

namespace muster::cluster {
namespace {

constexpr std::size_t lines_max = 8;
constexpr std::uint64_t epoch_found_max = std::numeric_limits<std::uint64_t>::max() / 2;
constexpr auto time_for_members = std::chrono::seconds(5);  // who live try at least every second

constexpr std::string_view how_to_choose =
    "\nTo go on with a job, give each worker the MS_RECOVERY_PATH with its points, as many workers as it "
    "has, and "
    "no other job's points. To give points up, remove them with `muster checkpoint rm PATH`, or set "
    "MUSTER_FRESH=1 for every process of one start";

}  // namespace

// --- from the processes that live --------------------------------------------------------------------------

// No log says anything of a job, and here is a living member of one: what it and its like say replaces the
// log. Its seat is its own, the others' are unknown until they come, or count as lost.
bool SchedulerMachine::adopts_job_of_member(PeerId id, const Message& message,
                                            const message::Register& request) {
  if (config_.fresh) {
    fail({Code::refused,
          fmt::format(
              "MUSTER_FRESH=1 would give job {:016x} up, and {} {} (node '{}' at {}, pid {}) lives and is "
              "in epoch {} of it: unset MUSTER_FRESH to go on with it, or end its processes first",
              message.job_id, to_string(request.member.role), request.member.rank, request.member.node_id,
              request.member.address, request.member.pid, message.epoch),
          exit_code_refused});
    actions_.push_back(scheduler_action::Close{id});
    return false;
  }
  config_.job_id = message.job_id;
  config_.seed = request.memory.seed;
  epoch_ = message.epoch;
  epoch_min_ = config_.adopted_epoch;
  is_recorded_ = false;
  phase_ = Phase::running;
  stuck_.begin(now_);
  next_progress_ = now_ + progress_interval;
  seats_ = Seats(config_.worker_num, config_.server_num);
  known_members_.assign(seats_.all().size(), 0);
  for (Seat& seat : seats_.all()) expect_member(seat);
  log(log::Level::warning,
      fmt::format(
          "there is no log of job {:016x}, and its processes live: it goes on from what they say, which "
          "is epoch {} so far",
          config_.job_id, epoch_));
  give_newcomers_seats();
  return true;
}

// Who came for the first epoch waits for a seat that is vacant.
void SchedulerMachine::give_newcomers_seats() {
  for (const PeerId id : std::exchange(order_, {})) {
    const auto peer = peers_.extract(id);
    const Peer& old = peer.mapped();
    by_incarnation_.erase(old.member.incarnation);
    if (!old.is_connected() || old.process.state == ProcessState::exited ||
        refuses_foreign_points(id, old.member, old.memory))
      continue;
    newcomers_.push_back({old, id, now_});
    send(id, message::Waiting{"waiting for a vacant place among the processes of the job that live"});
  }
  by_name_.clear();
  present_.clear();
}

// A process that was accepted before is heard while it waits again.
bool SchedulerMachine::waits_for_seat(PeerId id, const Message& message) {
  if (std::ranges::find(newcomers_, id, &Newcomer::id) == newcomers_.end()) return false;
  if (std::holds_alternative<message::Beat>(message.body)) send(id, message::Beat{});
  if (std::holds_alternative<message::Leave>(message.body)) send(id, message::LeaveAck{});
  return true;
}

// A living member takes the seat that no log names as its own.
void SchedulerMachine::claim(const Newcomer& self, const Message& message, const message::Register& request,
                             Seat& seat) {
  if (was_given_up(self.member, seats_.place(self.member.role, self.member.rank)))
    return turn_down(self.id, self.member,
                     fmt::format("it is of epoch {}, and its place was taken by another process in epoch {}",
                                 request.memory.roster_epoch, known_epoch_));
  if (seat.peer != 0) forget(seat.peer);
  seat.is_unknown = false;
  seat.is_claimed = true;
  seat.member = self.member;
  seat.key = self.key;
  seat.peer = self.id;
  Peer& peer = accept(self.id, self);
  peer.has_rank = true;
  peer.said.epoch = peer.epoch_accepted = peer.epoch_member = message.epoch;
  finished_calls_ = std::max(finished_calls_, request.memory.finished_calls);
  claimed_calls_ = request.memory.finished_calls;
  claimed_collectives_ = request.memory.finished_collectives;
  if (phase_ == Phase::recovering) return tell_of_epoch(self.id, peer);
  if (request.epoch_lost || message.epoch < epoch_) lose_epoch(lost_with_log());
}

Failure SchedulerMachine::lost_with_log() const {
  return {Code::peer_lost, fmt::format("epoch {} was lost before the scheduler's log was", epoch_),
          exit_code_peer_lost};
}

// While the log is rebuilt: the newest roster that any member has says whose the seats are. Who claimed one
// before that, and was given up in an epoch that it has not heard of, had no part in what was done since.
void SchedulerMachine::learn_members(const Message& message, const message::Register& request) {
  if (!is_rebuilding() || phase_ == Phase::telling) return;
  const MembershipReport& memory = request.memory;
  const std::size_t count = known_members_.size();
  const std::size_t own = seats_.place(request.member.role, request.member.rank);
  const bool is_sound = own < count && !memory.incarnations.empty() && memory.incarnations.size() <= count &&
                        memory.incarnations.front() == request.member.incarnation &&
                        memory.roster_epoch <= message.epoch;
  if (message.epoch > epoch_) {
    epoch_ = message.epoch;
    lose_epoch(lost_with_log());
  }
  if (!is_sound || memory.roster_epoch < known_epoch_) return;
  if (memory.roster_epoch > std::exchange(known_epoch_, memory.roster_epoch)) known_members_.assign(count, 0);
  for (std::size_t i = 0; i < memory.incarnations.size(); ++i)
    known_members_[(own + i) % count] = memory.incarnations[i];
  for (std::size_t i = 0; i < count; ++i)
    if (Seat& seat = seats_.all()[i]; seat.is_claimed && was_given_up(seat.member, i)) void_claim(seat);
}

bool SchedulerMachine::was_given_up(const Member& member, std::size_t place) const {
  return known_members_[place] != 0 && known_members_[place] != member.incarnation;
}

// Even a goodbye on that seat was of another epoch. The one whose it is may come.
void SchedulerMachine::void_claim(Seat& seat) {
  log(log::Level::warning,
      fmt::format("{} {} (node '{}' at {}, pid {}) was given up before epoch {} began, of which others are",
                  to_string(seat.member.role), seat.member.rank, seat.member.node_id, seat.member.address,
                  seat.member.pid, known_epoch_));
  if (seat.member.has_left && seat.member.role == Role::worker) --workers_left_;
  if (const PeerId id = find_process(seat.member, seat.key); id != 0) {
    if (!peer_at(id).has_left())
      send(id, message::Refuse{{Code::refused,
                                fmt::format("the scheduler refused this process: its place was taken by "
                                            "another process in epoch {}",
                                            known_epoch_),
                                exit_code_refused}});
    forget(id);
  }
  seat = Seats::unknown(seat.member.role, seat.member.rank);
  expect_member(seat);
}

// All members of the epoch are there: its roster is known again, and no process had to stop.
void SchedulerMachine::rebuild_if_complete() {
  if (!is_rebuilding() || phase_ != Phase::running) return;
  if (std::ranges::any_of(seats_.all(), &Seat::is_unknown)) return;
  auto roster = std::make_shared<Roster>();
  roster->epoch = epoch_;
  roster->job_id = config_.job_id;
  roster->seed = config_.seed;
  roster->workers = seats_.members(Role::worker);
  roster->servers = seats_.members(Role::server);
  for (auto* members : {&roster->workers, &roster->servers})
    for (Member& member : *members) member.has_left = false;  // not before the epoch began
  roster->recovers = true;
  roster->finished_calls = claimed_calls_;
  roster->finished_collectives = claimed_collectives_;
  take(std::move(roster));
  record_job();
  record(record::Formed{roster_, seats_.keys()});
  if (finished_calls_ > claimed_calls_) record(record::Finished{finished_calls_});  // since
  for (const Seat& seat : seats_.all()) {
    if (!seat.member.has_left) continue;
    record(record::Left{seat.member.role, seat.member.rank});
    if (seat.member.role == Role::worker) left_in_epoch_ = seat.member.rank;
  }
  log(log::Level::warning, fmt::format("all processes of epoch {} are known again", epoch_));
}

// --- from the points that are found ------------------------------------------------------------------------

std::vector<const FoundJob*> SchedulerMachine::unfinished(const MembershipReport& memory) const {
  std::vector<const FoundJob*> jobs;
  for (const FoundJob& job : memory.found)
    if (!job.is_done && job.job_id != config_.ended_job_id &&
        std::ranges::find(given_up_, job.job_id) == given_up_.end())
      jobs.push_back(&job);
  return jobs;
}

std::vector<const Peer*> SchedulerMachine::finders() const {
  std::vector<const Peer*> finders;
  for (const PeerId id : order_)
    if (const Peer& peer = peer_at(id); !unfinished(peer.memory).empty()) finders.push_back(&peer);
  return finders;
}

// A line for each worker that has found something, and how many have not.
std::string SchedulerMachine::who_found_what() const {
  std::vector<std::string> lines;
  const auto finders = this->finders();
  for (const Peer* peer : finders)
    for (const FoundJob* job : unfinished(peer->memory))
      if (lines.size() < lines_max)
        lines.push_back(fmt::format("\n  {} has {}", describe(*peer), cluster::describe(*job)));
  const std::size_t others = config_.worker_num - std::min<std::size_t>(config_.worker_num, finders.size());
  if (others > 0) lines.push_back(fmt::format("\n  {} of the workers have none", others));
  return fmt::format("{}", fmt::join(lines, ""));
}

// Before the first epoch. Nothing begins anew where points of an unfinished job are, unless all were
// told so. False: the job has failed.
bool SchedulerMachine::settle_job() {
  const auto finders = this->finders();
  if (finders.empty()) return true;
  const auto is_fresh = [&](PeerId id) { return peer_at(id).memory.fresh; };
  if (config_.fresh || std::ranges::any_of(order_, is_fresh)) return gives_up_found_jobs();
  std::set<std::uint64_t> ids;
  const FoundJob* found = nullptr;
  bool fits = true;
  for (const Peer* peer : finders) {
    for (const FoundJob* job : unfinished(peer->memory)) {
      ids.insert(job->job_id);
      fits = fits && job->worker_num == config_.worker_num;
      if (found == nullptr || job->is_in_use) found = job;
    }
  }
  if (ids.size() == 1 && fits) {
    if (waits_for_members(*found)) return false;
    adopt(*found, finders);
    return true;
  }
  fail({Code::refused,
        fmt::format("there are recovery points of {} that this job of {} worker{} is not:{}{}",
                    ids.size() == 1 ? "an unfinished job" : "unfinished jobs", config_.worker_num,
                    config_.worker_num == 1 ? "" : "s", who_found_what(), how_to_choose),
        exit_code_refused});
  return false;
}

// A process holds its folder, which should come, or is ending. If not, it is a job of another scheduler.
bool SchedulerMachine::waits_for_members(const FoundJob& job) {
  if (!job.is_in_use) return false;
  if (!members_due_) members_due_ = now_ + time_for_members;
  if (now_ >= *members_due_)
    fail({Code::refused,
          fmt::format(
              "processes of an unfinished job live that do not come to this scheduler. Is it another one's? "
              "Then give this job an MS_RECOVERY_PATH of its own. If they were ending, start again:{}",
              who_found_what()),
          exit_code_refused});
  return true;
}

bool SchedulerMachine::gives_up_found_jobs() {
  std::vector<std::string> without;
  if (!config_.fresh) without.push_back("the scheduler");
  for (const PeerId id : order_)
    if (!peer_at(id).memory.fresh && without.size() < lines_max) without.push_back(describe(peer_at(id)));
  if (!without.empty()) {
    fail({Code::refused,
          fmt::format(
              "MUSTER_FRESH=1 is set at some processes of the job and not at {}. Set it everywhere to give "
              "up what was found, or nowhere to go on with it:{}",
              fmt::join(without, ", "), who_found_what()),
          exit_code_refused});
    return false;
  }
  log(log::Level::warning, fmt::format("MUSTER_FRESH=1: given up is{}", who_found_what()));
  for (const Peer* peer : finders())
    for (const FoundJob& job : peer->memory.found) given_up_.push_back(job.job_id);
  return true;
}

void SchedulerMachine::adopt(const FoundJob& job, const std::vector<const Peer*>& finders) {
  config_.job_id = job.job_id;
  epoch_ = epoch_min_ = config_.adopted_epoch;
  is_recorded_ = false;
  has_points_ = true;
  finished_calls_ = std::numeric_limits<std::uint64_t>::max();
  std::optional<std::uint64_t> seed;
  for (const Peer* peer : finders) {
    const FoundJob* found = peer->memory.find(job.job_id);
    // Clocks may go back, and no process takes a folder from one of a later epoch.
    epoch_ = epoch_min_ = std::max(epoch_, std::min(found->epoch, epoch_found_max) + 1);
    finished_calls_ = std::min(finished_calls_, found->finished_calls);
    if (!seed) seed = found->seed;
  }
  config_.seed = seed.value_or(config_.seed);
  log(log::Level::warning,
      fmt::format("there is no log of an unfinished job, and points of one are there. It goes "
                  "on:{}{}",
                  who_found_what(), seed ? "" : "\n  Its seed is not known: another one is drawn"));
}

bool SchedulerMachine::takes_rank_of_its_points(PeerId id, std::vector<std::optional<PeerId>>& places) const {
  const FoundJob* found = peer_at(id).memory.find(config_.job_id);
  if (found == nullptr) return false;
  for (const std::uint32_t rank : found->ranks) {
    if (rank >= places.size() || places[rank]) continue;
    places[rank] = id;
    return true;
  }
  return false;
}

// --- in a job that is known --------------------------------------------------------------------------------

// A process that comes new with points of other jobs only: neither may they be cleared away, nor does it
// belong here. Where no other process is there, that is an error for all.
bool SchedulerMachine::refuses_foreign_points(PeerId id, const Member& member,
                                              const MembershipReport& memory) {
  if (phase_ == Phase::forming) return false;
  if (memory.fresh)
    log(log::Level::warning,
        fmt::format(
            "{} '{}' has MUSTER_FRESH=1, and job {:016x} goes on: to give it up, set it at the scheduler too",
            to_string(member.role), member.node_id, config_.job_id));
  const auto found = unfinished(memory);
  if (found.empty() || memory.fresh || memory.find(config_.job_id) != nullptr) return false;
  const std::string reason = fmt::format(
      "this is job {:016x} of {} workers, and it has points of another one that is unfinished: {}{}",
      config_.job_id, config_.worker_num, cluster::describe(*found.front()), how_to_choose);
  turn_down(id, member, reason);
  const bool is_alone = std::ranges::all_of(peers_, [](const auto& entry) {
    const Peer& peer = entry.second;  // who is awaited may live, and is on its way
    return peer.has_left() || peer.connection == PeerConnection::closed;
  });
  if (is_alone)
    fail({Code::refused,
          fmt::format("{} '{}' at {}: {}", to_string(member.role), member.node_id, member.address, reason),
          exit_code_refused});
  return true;
}

// What the job has kept must be there: in a process that lived on, or in a folder.
bool SchedulerMachine::somebody_holds_the_job() {
  if (!has_points_) return true;
  std::vector<std::string> lines;
  for (const Seat& seat : seats_.all()) {
    if (seat.peer == 0 || seat.member.role != Role::worker) continue;
    const Peer& peer = peer_at(seat.peer);
    if (peer.epoch_member <= epoch_ || peer.memory.find(config_.job_id) != nullptr) return true;
    if (lines.size() < lines_max) lines.push_back(describe(peer));
  }
  fail({Code::not_found,
        fmt::format(
            "job {:016x} has kept recovery points, and now no worker has any below its MS_RECOVERY_PATH: {}. "
            "Bring the folders back and start everybody again; or set MUSTER_FRESH=1 for every process of "
            "one start to begin a new job",
            config_.job_id, fmt::join(lines, ", ")),
        exit_code_refused});
  return false;
}

// Once it is settled which job it is; nothing is recorded before.
void SchedulerMachine::record_job() {
  if (std::exchange(is_recorded_, true)) return;
  record(record::Job{.job_id = config_.job_id,
                     .seed = config_.seed,
                     .worker_num = config_.worker_num,
                     .server_num = config_.server_num,
                     .ended_job_id = config_.ended_job_id});
  if (!config_.address.empty()) record(record::At{config_.address});
  if (epoch_min_ > 0) record(record::Adopted{epoch_min_});
  if (has_points_) record(record::Kept{});
}

}  // namespace muster::cluster
