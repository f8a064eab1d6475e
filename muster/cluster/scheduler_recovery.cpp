// What the scheduler of a job that recovers does beyond the rest: seats become vacant and are taken again, an
// epoch is lost and the next one formed, and a restarted scheduler goes on where its recovery log ends.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "muster/cluster/scheduler.h"

namespace muster::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// In which processes that live find a scheduler that was started again. They try at least every second.
// This is not waited for on a host where processes can be seen: one that has ended is seen at once, and a pid
// that means another process by now is found out in the end.
constexpr milliseconds return_time = seconds(5);
constexpr milliseconds return_time_watched = seconds(8);
// A broken link is often a death that is about to be reported.
constexpr milliseconds link_doubt_time{300};
constexpr std::uint32_t links_lost_in_a_row_max = 10;

Progress progress_of(const Peer& peer) { return peer.said.progress.value_or(Progress{}); }

}  // namespace

// --- the scheduler was dead itself -------------------------------------------------------------------------

// No process is connected yet. A job that had ended by a failure has told its processes so: all seats are
// vacant. Otherwise they may all live, and come back.
void SchedulerMachine::resume() {
  if (!config_.saved) return;
  const SavedJob saved = *std::exchange(config_.saved, std::nullopt);
  take(saved.roster);
  seats_ = Seats(*roster_, saved.keys);
  finished_calls_ = saved.finished_calls;
  has_points_ = saved.has_points;
  epoch_min_ = saved.epoch_min;
  phase_ = saved.failure ? Phase::recovering : Phase::running;
  stuck_.begin(now_);
  next_progress_ = now_ + progress_interval;
  for (Seat& seat : seats_.all()) {
    const auto is_it = [&](const record::Left& left) {
      return left.role == seat.member.role && left.rank == seat.member.rank;
    };
    if (saved.failure) {
      seat.member.has_left = false;
      seat.how = "it ended with the job";
      seat.variable = "MS_TOPO_TIMEOUT";
      seat.wait_until = now_ + config_.topo_timeout;
      continue;
    }
    if (std::any_of(saved.left.begin(), saved.left.end(), is_it) && !seat.member.has_left) {
      seat.member.has_left = true;
      if (seat.member.role == Role::worker) left_in_epoch_ = seat.member.rank;
    }
    if (seat.member.has_left) {
      workers_left_ += seat.member.role == Role::worker;
      continue;
    }
    expect_member(seat);
  }
  if (workers_left_ == config_.worker_num) end_job();
}

// It may live, and come back.
void SchedulerMachine::expect_member(Seat& seat) {
  const PeerId id = next_awaited_--;
  seat.peer = id;
  Peer& peer = peers_[id] = {{.member = seat.member, .key = seat.key}};
  if (peer.member.incarnation != 0)
    by_incarnation_[peer.member.incarnation] = id;  // 0: it is not known whose it is
  peer.has_rank = true;
  peer.connection = PeerConnection::awaited;
  peer.heard = now_;
  watch(id, peer);
  doubt(peer, peer.is_watched() ? return_time_watched : return_time);
}

// --- losing ------------------------------------------------------------------------------------------------

// The process is gone; its seat is vacant.
void SchedulerMachine::lose(PeerId id, const std::string& how) {
  const Peer& peer = peer_at(id);
  const Failure death = death_of(peer, how);
  log(log::Level::warning, death.message);
  Seat* seat = seats_.find_peer(id);
  if (seat != nullptr) {
    // Where the scheduler itself was dead, everything may have been: people start it all again.
    const bool is_long =
        peer.connection == PeerConnection::awaited && config_.topo_timeout > config_.node_timeout;
    seat->how = how;
    seat->step = peer.said.step;
    seat->wait_until = now_ + (is_long ? config_.topo_timeout : config_.node_timeout);
    seat->variable = is_long ? "MS_TOPO_TIMEOUT" : "MS_NODE_TIMEOUT";
  }
  forget(id);
  if (seat == nullptr) return;
  vacancies_changed_ = true;
  lose_epoch(death);
}

// Of all that is kept by the number of its connection, nothing stays.
void SchedulerMachine::forget(PeerId id) {
  const auto found = peers_.find(id);
  const Peer& peer = found->second;
  if (Seat* seat = seats_.find_peer(id)) {
    seat->peer = 0;
    if (peer.said.progress)
      seat->kept_calls = peer.said.progress->kept_calls;
    else if (peer.connection != PeerConnection::awaited && !seat->kept_calls)
      seat->kept_calls = 0;
  }
  if (std::erase(order_, id) > 0 && phase_ == Phase::forming) --present_[peer.member.role];
  const auto name = by_name_.find({peer.member.role, peer.member.node_id});
  if (name != by_name_.end() && name->second == id) by_name_.erase(name);
  const auto process = by_incarnation_.find(peer.member.incarnation);
  if (process != by_incarnation_.end() && process->second == id) by_incarnation_.erase(process);
  if (peer.is_connected()) actions_.push_back(scheduler_action::Close{id});
  watched_as_.erase(peer.process.watch_id);
  peers_.erase(found);
}

void SchedulerMachine::lose_epoch(Failure reason) {
  if (phase_ != Phase::running) return;
  phase_ = Phase::recovering;
  lost_reason_ = std::move(reason);
  lost_at_ = now_;
  link_lost_until_.reset();
  next_progress_ = now_ + progress_interval;
  for (auto& [id, peer] : peers_)
    if (!peer.has_left()) tell_of_epoch(id, peer);
}

// What a process that knows an older epoch has to hear.
void SchedulerMachine::tell_of_epoch(PeerId id, Peer& peer) {
  peer.epoch_told = now_;
  if (phase_ == Phase::recovering)
    send(id, message::EpochLost{lost_reason_});
  else if (roster_ != nullptr)
    share(id, roster_ready_);
}

// A word to it, or from it, may have been lost with a connection.
void SchedulerMachine::catch_up(PeerId id, Peer& peer, std::uint64_t epoch) {
  if (peer.has_left() || now_ - peer.epoch_told < beat_interval_for(config_.node_timeout)) return;
  if (phase_ == Phase::recovering ? peer.state != PeerState::ready
                                  : phase_ == Phase::running && epoch < epoch_)
    tell_of_epoch(id, peer);
}

void SchedulerMachine::note_progress(Peer& peer, const Progress& progress) {
  peer.said.progress = progress;
  if (progress.has_point && !std::exchange(has_points_, true) && config_.recovers) record(record::Kept{});
  if (progress.calls <= finished_calls_) return;
  finished_calls_ = progress.calls;
  if (config_.recovers) record(record::Finished{finished_calls_});
}

void SchedulerMachine::handle(PeerId id, Peer& peer, const message::Rejoin& rejoin, std::uint64_t epoch) {
  if (phase_ != Phase::recovering || epoch != epoch_ || peer.has_left()) return;
  peer.member.data_port = rejoin.endpoint.port;
  peer.member.local_name = rejoin.endpoint.local_name;
  note_progress(peer, rejoin.progress);
  peer.state = PeerState::ready;
  if (Seat* seat = seats_.find_peer(id)) seat->member = peer.member;
}

void SchedulerMachine::handle(const Peer& peer, const message::LinkLost& lost, std::uint64_t epoch) {
  if (phase_ != Phase::running || epoch != epoch_ || link_lost_until_) return;
  link_lost_until_ = now_ + link_doubt_time;
  link_lost_reason_ = {Code::peer_lost, fmt::format("{} lost its peers: {}", describe(peer), lost.reason),
                       exit_code_peer_lost};
}

// --- coming back -------------------------------------------------------------------------------------------

PeerId SchedulerMachine::find_process(const Member& member, const ProcessKey& key) const {
  const auto found = by_incarnation_.find(member.incarnation);
  return found != by_incarnation_.end() && peer_at(found->second).key == key ? found->second : 0;
}

void SchedulerMachine::register_recovering(PeerId id, const Message& message,
                                           const message::Register& request) {
  const Member& member = request.member;
  const Newcomer self{
      {member, key_of(request.secret, member), request.strict, request.traits, request.memory}, id, now_};
  const auto refuse_it = [&](const std::string& reason) { turn_down(id, member, reason); };
  if (auto reason = unusable(request)) return refuse_it(*reason);
  // It was done with the others, and the scheduler died before it could say so.
  if (message.job_id != 0 && message.job_id == config_.ended_job_id) {
    actions_.push_back(scheduler_action::Send{id, {message.job_id, message.epoch, message::Ended{}}});
    actions_.push_back(scheduler_action::Close{id});
    return;
  }
  const bool is_member = message.job_id != 0;
  if (is_member && phase_ == Phase::forming && !adopts_job_of_member(id, message, request)) return;
  if (is_member && message.job_id != config_.job_id)
    return refuse_it(
        fmt::format("it belongs to job {:016x}, and this is job {:016x}", message.job_id, config_.job_id));
  if (message.epoch > epoch_ && !is_rebuilding())
    return refuse_it(
        fmt::format("it belongs to epoch {}, and the newest that the scheduler knows is {}: is "
                    "its MS_RECOVERY_PATH the one of before?",
                    message.epoch, epoch_));
  // On a connection of before, or what it said before on this one.
  std::erase_if(newcomers_, [&](const Newcomer& other) { return other.key == self.key || other.id == id; });
  if (const auto reason = impersonation(member, self.key)) return refuse_it(*reason);
  if (is_member) learn_members(message, request);
  if (const PeerId old_id = find_process(member, self.key); old_id != 0)
    return come_back(old_id, id, message, request);
  if (phase_ == Phase::telling)
    return refuse_it(failure_ ? fmt::format("the job has ended: {}", failure_->message)
                              : "the job has ended");
  if (!is_member) {
    if (refuses_foreign_points(id, member, request.memory)) return;
    newcomers_.push_back(self);
    if (place(newcomers_.back()) == Verdict::decided) return newcomers_.pop_back();
    send(id,
         message::Waiting{fmt::format("waiting for a word of the process in whose place this one comes, or "
                                      "for its end")});
    return;
  }
  // It has a roster, and it was given up. Its seat is its own again, unless another process has it.
  if (Seat* unknown = seats_.find_unknown(member.role, member.rank))
    return claim(self, message, request, *unknown);
  Seat* seat = seats_.find(self.key);
  if (seat != nullptr && seat->member.has_left) {  // it was done, and has not heard that this was noted
    Peer& peer = accept(id, {.member = seat->member, .key = self.key});
    peer.state = PeerState::left;
    peer.has_rank = true;
    peer.epoch_accepted = peer.epoch_member = message.epoch;
    return;
  }
  if (seat == nullptr || !seat->is_vacant()) {
    const Seat* now = seat != nullptr ? seat : seats_.find(member.role, member.node_id);
    return refuse_it(fmt::format(
        "it is of epoch {}, and its place was taken by another process{}; this is "
        "epoch {}",
        message.epoch,
        now == nullptr ? "" : fmt::format(" (at {}, pid {})", now->member.address, now->member.pid), epoch_));
  }
  Peer& peer = sit(self, *seat, false);
  peer.epoch_accepted = peer.epoch_member = message.epoch;
}

// The same process on another connection.
void SchedulerMachine::come_back(PeerId old_id, PeerId id, const Message& message,
                                 const message::Register& request) {
  auto entry = peers_.extract(old_id);
  entry.key() = id;
  Peer& peer = peers_.insert(std::move(entry)).position->second;
  if (peer.is_connected()) actions_.push_back(scheduler_action::Close{old_id});
  if (peer.is_watched()) watched_as_[peer.process.watch_id] = id;
  std::replace(order_.begin(), order_.end(), old_id, id);
  const auto name = by_name_.find({peer.member.role, peer.member.node_id});
  if (name != by_name_.end() && name->second == old_id) name->second = id;
  by_incarnation_[peer.member.incarnation] = id;
  if (Seat* seat = seats_.find_peer(old_id)) seat->peer = id;
  peer.connection = PeerConnection::open;
  if (peer.process.state != ProcessState::exited) peer.doubted_until.reset();
  disprove_report(peer);
  greet(id, peer);
  peer.strict = request.strict;
  peer.traits = request.traits;
  const bool knows_roster = message.job_id != 0;
  if (phase_ == Phase::telling) {
    untold_.erase(old_id);
    if (!peer.has_left()) untold_.insert(id);
    send(id, message::Ended{failure_});
  } else if (peer.has_left()) {
    peer.state = PeerState::returned;
  } else if (phase_ == Phase::recovering) {
    if (!knows_roster)
      peer.state = PeerState::ready;  // it has told where it is reached, and no one has tried
    if (peer.state != PeerState::ready) tell_of_epoch(id, peer);
  } else if (phase_ == Phase::running) {
    if (request.epoch_lost && message.epoch == epoch_)
      lose_epoch({Code::peer_lost, fmt::format("epoch {} was lost before the scheduler died", epoch_),
                  exit_code_peer_lost});
    else if (!knows_roster || message.epoch < epoch_)
      tell_of_epoch(id, peer);
  }
}

// --- new processes -----------------------------------------------------------------------------------------

// After each event: newcomers take seats, and with the last one the next epoch begins.
void SchedulerMachine::settle() {
  std::erase_if(newcomers_, [&](const Newcomer& newcomer) { return place(newcomer) == Verdict::decided; });
  rebuild_if_complete();
  if (phase_ == Phase::recovering) form_next_if_complete();
  if (std::exchange(vacancies_changed_, false) && phase_ == Phase::recovering && !seats_.vacant().empty())
    announce_waiting();
}

SchedulerMachine::Verdict SchedulerMachine::place(const Newcomer& newcomer) {
  if (phase_ == Phase::telling)
    return turn_away(
        newcomer, failure_ ? fmt::format("the job has ended: {}", failure_->message) : "the job has ended");
  if (phase_ == Phase::forming) return place_before_roster(newcomer);
  const bool may_still_change = someone_is_doubted();
  const auto choice = seats_.choose(newcomer.member);
  if (const auto* reason = std::get_if<std::string>(&choice))
    return may_still_change ? Verdict::waits : turn_away(newcomer, *reason);
  Seat& seat = *std::get<Seat*>(choice);
  // Who was done may be started again with the others; alone it has nothing to do.
  if (seat.member.has_left && phase_ != Phase::recovering)
    return may_still_change ? Verdict::waits
                            : turn_away(newcomer, fmt::format("{} {} was done and has left the job",
                                                              to_string(seat.member.role), seat.member.rank));
  if (seat.peer != 0) return contest(seat.peer, newcomer);
  if (const auto reason = misfit(newcomer)) return turn_away(newcomer, *reason);
  sit(newcomer, seat, true);
  return Verdict::decided;
}

SchedulerMachine::Verdict SchedulerMachine::place_before_roster(const Newcomer& newcomer) {
  const auto taken = by_name_.find({newcomer.member.role, newcomer.member.node_id});
  if (taken != by_name_.end()) return contest(taken->second, newcomer);
  if (const auto reason = no_room(newcomer.member))
    return someone_is_doubted() ? Verdict::waits : turn_away(newcomer, *reason);
  accept(newcomer.id, newcomer);
  form_if_complete();
  return Verdict::decided;
}

// Two processes for one seat: the one that sits there keeps it if it says a word within two beats.
SchedulerMachine::Verdict SchedulerMachine::contest(PeerId stale_id, const Newcomer& newcomer) {
  const Peer& stale = peer_at(stale_id);
  const Duration beat = beat_interval_for(config_.node_timeout);
  if (stale.spoke >= newcomer.since + beat / 2) return turn_away(newcomer, duplicate_id(stale.member));
  if (now_ - newcomer.since < contest_time()) return Verdict::waits;
  send(stale_id,
       message::Refuse{{Code::refused,
                        fmt::format("the scheduler refused this process: a newer one took its place "
                                    "(at {}, pid {}), since it did not answer",
                                    newcomer.member.address, newcomer.member.pid),
                        exit_code_refused}});
  lose(stale_id, "it did not answer, and a newer process took its place");
  return place(newcomer);
}

SchedulerMachine::Verdict SchedulerMachine::turn_away(const Newcomer& newcomer, const std::string& reason) {
  turn_down(newcomer.id, newcomer.member, reason);
  return Verdict::decided;
}

// `ready`: it has said where it will be reached in the next epoch.
Peer& SchedulerMachine::sit(const Newcomer& newcomer, Seat& seat, bool ready) {
  Registrant registrant = newcomer;
  Member& member = registrant.member;
  if (std::exchange(seat.member.has_left, false) && seat.member.role == Role::worker) --workers_left_;
  member.rank = seat.member.rank;
  if (seat.member.is_named && !member.is_named) {
    member.node_id = seat.member.node_id;
    member.is_named = true;
  }
  seat.member = member;
  seat.is_unknown = seat.is_claimed = false;
  seat.key = newcomer.key;
  seat.peer = newcomer.id;
  Peer& peer = accept(newcomer.id, std::move(registrant));
  peer.has_rank = true;
  if (ready) {
    peer.state = PeerState::ready;
    peer.epoch_member = epoch_ + 1;
  } else
    tell_of_epoch(newcomer.id, peer);
  vacancies_changed_ = true;
  return peer;
}

void SchedulerMachine::form_next_if_complete() {
  std::uint64_t collectives = collectives_of_left();
  for (const Seat& seat : seats_.all()) {
    if (seat.member.has_left) continue;
    if (seat.peer == 0) return;
    const Peer& peer = peer_at(seat.peer);
    if (peer.state != PeerState::ready || !peer.is_connected() || peer.doubted_until) return;
    collectives = std::max(collectives, progress_of(peer).collectives);
  }
  if (!somebody_holds_the_job()) return;
  auto roster = std::make_shared<Roster>();
  roster->epoch = next_epoch();
  roster->job_id = config_.job_id;
  roster->seed = config_.seed;
  roster->workers = seats_.members(Role::worker);
  roster->servers = seats_.members(Role::server);
  roster->recovers = true;
  roster->finished_calls = finished_calls_;
  roster->finished_collectives = collectives;
  if (!check_traits()) return;
  begin_epoch(std::move(roster));
  log(log::Level::warning, fmt::format("epoch {}: all are there again, training goes on", epoch_));
}

// As many as a process has passed that will make none again.
std::uint64_t SchedulerMachine::collectives_of_left() const {
  std::uint64_t most = 0;
  for (const Seat& seat : seats_.all()) {
    if (!seat.member.has_left) continue;
    const auto peer = peers_.find(find_process(seat.member, seat.key));
    if (peer != peers_.end()) most = std::max(most, progress_of(peer->second).collectives);
  }
  return most;
}

// Whether the folder of a worker lacks the end of a call that is over: should it die, only the memory of
// others has that. Who comes new may have lost its folder, until it says what is there; of a vacant seat of
// which nothing was said, no one waits for the next process.
bool SchedulerMachine::lacks_ends(const Seat& seat) const {
  if (seat.member.role != Role::worker || seat.member.has_left || seat.is_unknown) return false;
  if (seat.peer == 0) return seat.kept_calls.value_or(finished_calls_) < finished_calls_;
  return progress_of(peer_at(seat.peer)).kept_calls < finished_calls_;
}

// Who has the ends leaves after those who lack them. Of those, none waits for another that is done as well.
std::optional<std::uint32_t> SchedulerMachine::who_may_need(PeerId id) const {
  const auto& seats = seats_.all();
  const bool lacks_itself = std::any_of(
      seats.begin(), seats.end(), [&](const Seat& seat) { return seat.peer == id && lacks_ends(seat); });
  for (const Seat& seat : seats) {
    if (seat.peer == id || !lacks_ends(seat)) continue;
    if (lacks_itself && seat.peer != 0 && peer_at(seat.peer).said.asks_to_leave) continue;
    return seat.member.rank;
  }
  return std::nullopt;
}

// Of the vacant seats; when there are none, of those who live and have not answered.
std::string SchedulerMachine::waiting_text() const {
  if (auto text = seats_.waiting_text(next_epoch()); !text.empty()) return text + refused_meanwhile();
  std::vector<std::string> silent;
  for (const auto& [id, peer] : peers_)
    if (!peer.has_left() && (peer.state != PeerState::ready || !peer.is_connected()))
      silent.push_back(describe(peer));
  silent.resize(std::min<std::size_t>(silent.size(), 8));
  return silent.empty()
             ? ""
             : fmt::format("epoch {}: waiting for an answer of {}", next_epoch(), fmt::join(silent, ", "));
}

// A process that was started again and does not come in is waited for in vain: it says why, and so do we.
std::string SchedulerMachine::refused_meanwhile() const {
  constexpr std::size_t shown_max = 8;
  const auto vacant = seats_.vacant();
  std::map<std::string, int> vacant_at;
  for (const Seat* seat : vacant) ++vacant_at[seat->member.address];
  std::string lines;
  for (std::size_t i = 0; i < std::min(vacant.size(), shown_max); ++i) {
    const Member& member = vacant[i]->member;
    const auto line = refused_for(member, vacant_at[member.address] == 1, attempts_, lost_at_, now_);
    if (!line.empty()) lines += "\n  " + line;
  }
  return lines;
}

void SchedulerMachine::announce_waiting() {
  const std::string text = waiting_text();
  if (!text.empty()) tell_all<message::Waiting>(text);
}

// --- time --------------------------------------------------------------------------------------------------

Duration SchedulerMachine::contest_time() const {
  return 2 * beat_interval_for(config_.node_timeout) + milliseconds(250);
}

bool SchedulerMachine::someone_is_doubted() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const auto& entry) { return entry.second.doubted_until.has_value(); });
}

TimePoint SchedulerMachine::recovery_deadline() const {
  TimePoint next = TimePoint::max();
  if (phase_ == Phase::telling) return next;
  for (const Newcomer& newcomer : newcomers_)
    if (const TimePoint due = newcomer.since + contest_time(); due > now_) next = std::min(next, due);
  if (link_lost_until_) next = std::min(next, *link_lost_until_);
  if (phase_ != Phase::recovering) return next;
  for (const Seat* seat : seats_.vacant()) next = std::min(next, seat->wait_until);
  return std::min(next, next_progress_);
}

void SchedulerMachine::check_recovery() {
  if (link_lost_until_ && now_ >= *link_lost_until_) {
    link_lost_until_.reset();
    if (++links_lost_in_a_row_ > links_lost_in_a_row_max)
      return fail({Code::peer_lost,
                   fmt::format("the workers lost their connections {} times without a step between: {}",
                               links_lost_in_a_row_, link_lost_reason_.message),
                   exit_code_peer_lost});
    log(log::Level::warning, link_lost_reason_.message);
    lose_epoch(link_lost_reason_);
  }
  if (phase_ != Phase::recovering) return;
  for (const Seat* seat : seats_.vacant()) {
    if (now_ < seat->wait_until) continue;
    const auto limit = seat->variable == "MS_NODE_TIMEOUT" ? config_.node_timeout : config_.topo_timeout;
    return fail({Code::peer_lost,
                 fmt::format("no process came within {:.3g} s ({}): {}", in_seconds(limit), seat->variable,
                             waiting_text()),
                 exit_code_peer_lost});
  }
  if (now_ < next_progress_) return;
  next_progress_ = now_ + progress_interval;
  announce_waiting();
}

}  // namespace muster::cluster
