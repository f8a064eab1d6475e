#include "muster/cluster/scheduler.h"

#include <fmt/format.h>

namespace muster::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds telling_time = seconds(1);

// How long a process that cannot be watched may take to make its connection again.
constexpr milliseconds reconnect_time{300};

// A heartbeat of a process that lives is here so long after it is due.
constexpr milliseconds word_time{250};

// What did not come as a message, whose texts are read so (wire.h).
scheduler_event::Rejected as_shown(scheduler_event::Rejected event) {
  event.address = printable(event.address);
  event.reason = printable(event.reason);
  if (event.claims) event.claims->node_id = printable(event.claims->node_id);
  return event;
}

}  // namespace

SchedulerMachine::SchedulerMachine(SchedulerConfig config, TimePoint now)
    : config_(std::move(config)),
      epoch_(config_.epoch),
      is_recorded_(!config_.fresh),
      stuck_(config_.stuck_limit),
      now_(now),
      start_(now),
      next_check_(now + beat_interval_for(config_.node_timeout)),
      announcements_(now) {}

SchedulerActions SchedulerMachine::step(const SchedulerEvent& event, TimePoint now) {
  if (phase_ == Phase::ended) return {};
  const TimePoint before = std::exchange(now_, now);
  const Duration expected = 2 * beat_interval_for(config_.node_timeout) + milliseconds(250);
  if (std::exchange(starts_, false)) resume();
  if (now - before > expected) forgive_own_pause(now - before);
  std::visit(Overloaded{[&](const scheduler_event::Received& e) { received(e.peer, e.message); },
                        [&](const scheduler_event::Closed& e) { closed(e.peer); },
                        [&](const scheduler_event::Exited& e) { exited(e); },
                        [&](const scheduler_event::Rejected& e) { note_rejected(as_shown(e)); },
                        [&](const scheduler_event::Interrupted&) {
                          fail({Code::aborted, "the scheduler was interrupted", exit_code_interrupted});
                        },
                        [](const scheduler_event::Tick&) {}},
             event);
  if (now >= deadline()) check(now);
  if (config_.recovers) settle();
  end_if_all_told();
  return std::exchange(actions_, {});
}

TimePoint SchedulerMachine::deadline() const {
  if (phase_ == Phase::ended) return TimePoint::max();
  if (starts_ && config_.saved) return now_;
  TimePoint next = next_check_;
  if (next_doubt_) next = std::min(next, *next_doubt_);
  if (phase_ == Phase::forming) next = std::min({next, start_ + config_.topo_timeout, announcements_.due()});
  if (phase_ == Phase::telling) next = std::min(next, told_until_);
  return config_.recovers ? std::min(next, recovery_deadline()) : next;
}

// --- events ------------------------------------------------------------------------------------------------

void SchedulerMachine::received(PeerId id, const Message& message) {
  if (const auto* request = std::get_if<message::Register>(&message.body)) {
    register_node(id, message, *request);
    return;
  }
  const auto found = peers_.find(id);
  if (found == peers_.end()) {
    if (serve_observer(id, message) || waits_for_seat(id, message)) return;
    refuse(id, fmt::format("it has not registered with epoch {} of this job", epoch_));
    return;
  }
  if (message.job_id != config_.job_id) return;  // a stale word changes nothing
  // In a job that recovers, a registered process may say what concerns no epoch while the next one begins.
  if (message.epoch != epoch_ && !config_.recovers) return;
  Peer& peer = found->second;
  if (!can_say(peer, message)) return;
  peer.heard = peer.spoke = now_;
  if (peer.process.state == ProcessState::reported && now_ > peer.process.reported_at + last_words_time)
    disprove_report(peer);
  peer.said.epoch = message.epoch;
  std::visit(Overloaded{[&](const message::Beat& beat) { handle(id, peer, beat, message.epoch); },
                        [&](const message::PeerGone& gone) { handle(peer, gone); },
                        [&](const message::Leave& leave) { handle(id, peer, leave); },
                        [&](const message::EndedAck&) { untold_.erase(id); },
                        [&](const message::Rejoin& rejoin) { handle(id, peer, rejoin, message.epoch); },
                        [&](const message::LinkLost& lost) { handle(peer, lost, message.epoch); },
                        [](const auto&) {}},  // what only a scheduler says
             message.body);
}

Peer& SchedulerMachine::peer_at(PeerId id) {
  const auto found = peers_.find(id);
  MUSTER_CHECK(found != peers_.end(), "a connection that is gone was not forgotten everywhere");
  return found->second;
}

const Peer& SchedulerMachine::peer_at(PeerId id) const {
  return const_cast<SchedulerMachine*>(this)->peer_at(id);
}

// What a process that was here before it has said is not its word; and only who has part in an epoch is done
// with it, or loses it.
bool SchedulerMachine::can_say(const Peer& peer, const Message& message) const {
  if (message.epoch < peer.epoch_accepted) return false;
  const auto* leave = std::get_if<message::Leave>(&message.body);
  const bool is_of_member = (leave != nullptr && leave->status == 0) ||
                            std::holds_alternative<message::Rejoin>(message.body) ||
                            std::holds_alternative<message::LinkLost>(message.body);
  return !is_of_member || message.epoch >= peer.epoch_member;
}

void SchedulerMachine::handle(PeerId id, Peer& peer, const message::Beat& beat, std::uint64_t epoch) {
  const bool goes_back = config_.recovers;  // to the last recovery point
  if (beat.step != no_step && (peer.said.step == no_step || beat.step > peer.said.step || goes_back)) {
    if (peer.said.step != beat.step) {
      log(log::Level::debug, fmt::format("{} has done step {}", describe(peer), beat.step));
      links_lost_in_a_row_ = 0;
    }
    peer.said.step = beat.step;
  }
  note_activity(peer, beat, epoch);
  note_progress(peer, beat.progress);
  send(id, answer_to(id, peer, beat, epoch));
  if (config_.recovers) catch_up(id, peer, epoch);
}

message::Beat SchedulerMachine::answer_to(PeerId id, Peer& peer, const message::Beat& beat,
                                          std::uint64_t epoch) {
  message::Beat answer;
  if (!config_.recovers) return answer;
  if (phase_ == Phase::running && epoch == epoch_) answer.left = left_in_epoch_;
  if (!beat.leaves) return answer;
  peer.said.asks_to_leave = true;
  answer.waits_for = who_may_need(id);
  answer.leaves = !answer.waits_for;
  return answer;
}

void SchedulerMachine::handle(PeerId id, Peer& peer, const message::Leave& leave) {
  const bool is_news = !peer.has_left();
  const bool is_done = leave.status == 0 && phase_ != Phase::forming && phase_ != Phase::telling;
  if (is_news && is_done && config_.recovers) record(record::Left{peer.member.role, peer.member.rank});
  send(id, message::LeaveAck{});
  if (!is_news) return;
  peer.state = PeerState::left;
  untold_.erase(id);
  peer.doubted_until.reset();
  if (leave.step != no_step) peer.said.step = leave.step;
  if (phase_ == Phase::telling) return;
  if (leave.status != 0) {
    if (config_.restarts_failed && config_.recovers && leave.status != exit_code_interrupted)
      return lose(id, fmt::format("it failed: {}", leave.reason));
    const int exit_code = leave.status > 0 && leave.status < 256 ? leave.status : 1;
    fail({Code::aborted, fmt::format("{} failed: {}", describe(peer), leave.reason), exit_code});
  } else if (phase_ == Phase::forming) {
    fail({Code::aborted, fmt::format("{} left before every process had come", describe(peer)),
          exit_code_peer_lost});
  } else {
    if (Seat* seat = seats_.find_peer(id)) {
      seat->member.has_left = true;
      seat->peer = 0;
    }
    if (peer.member.role != Role::worker) return;
    left_in_epoch_ = peer.member.rank;
    if (++workers_left_ == config_.worker_num) end_job();
  }
}

void SchedulerMachine::handle(const Peer& reporter, const message::PeerGone& gone) {
  const Seat* seat = seats_.find(gone.role, gone.rank);
  if (seat == nullptr || seat->peer == 0) return;
  Peer& peer = peer_at(seat->peer);
  if (peer.member.incarnation != gone.incarnation) return;  // another process has the seat since
  // Only a process that sees the same pids can know.
  if (shares_pids(peer.member.process_space, reporter.member.process_space))
    reported(seat->peer, peer, gone.status);
}

// What one process says of another is no proof: that one's connection ends, or it is silent. Last words that
// are under way are no sign of life.
void SchedulerMachine::reported(PeerId id, Peer& peer, const WaitStatus& status) {
  if (!peer.is_connected()) return exited(id, peer, status);
  if (peer.seems_ended() || peer.has_left() || phase_ == Phase::telling) return;
  peer.process.state = ProcessState::reported;
  peer.process.status = status;
  peer.process.reported_at = now_;
  doubt(peer, last_words_time + beat_interval_for(config_.node_timeout) + word_time);
}

void SchedulerMachine::disprove_report(Peer& peer) {
  if (peer.process.state == ProcessState::exited) return;
  peer.process.state = ProcessState::lives;
  peer.process.status.reset();
  peer.doubted_until.reset();
}

void SchedulerMachine::closed(PeerId id) {
  forget_observer(id);
  std::erase_if(newcomers_, [&](const Newcomer& newcomer) { return newcomer.id == id; });
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  Peer& peer = found->second;
  peer.connection = PeerConnection::closed;
  untold_.erase(id);
  if (peer.has_left() || phase_ == Phase::telling) return;
  if (peer.seems_ended()) return declare_dead(id, peer, how_it_ended(peer.process.status));
  if (config_.recovers) {  // a process that lives makes its connection again
    if (!peer.is_watched()) doubt(peer, reconnect_time);
    return;
  }
  // A watched process that was killed is about to be reported as such: worth a moment for the better message.
  if (peer.is_watched()) return doubt(peer, last_words_time);
  declare_dead(id, peer, "its connection was lost");
}

void SchedulerMachine::exited(const scheduler_event::Exited& event) {
  const auto current = watched_as_.find(event.peer);
  const auto found = peers_.find(current == watched_as_.end() ? event.peer : current->second);
  if (found != peers_.end()) exited(found->first, found->second, event.status);
}

void SchedulerMachine::exited(PeerId id, Peer& peer, const WaitStatus& status) {
  if (!peer.process.status) peer.process.status = status;
  const bool is_news = std::exchange(peer.process.state, ProcessState::exited) != ProcessState::exited;
  if (!is_news || peer.has_left() || phase_ == Phase::telling) return;
  // Its connection may hold a last word, or be held open by a child that it forked.
  if (peer.is_connected())
    doubt(peer, last_words_time);
  else
    declare_dead(id, peer, how_it_ended(peer.process.status));
}

// The scheduler itself may have been stopped; what the nodes said meanwhile may not have been read yet.
void SchedulerMachine::forgive_own_pause(Duration pause) {
  for (auto& [id, peer] : peers_) {
    peer.heard = now_;
    if (peer.doubted_until) *peer.doubted_until += pause;
  }
  if (members_due_) *members_due_ += pause;
  if (link_lost_until_) *link_lost_until_ += pause;
  for (Newcomer& newcomer : newcomers_) newcomer.since = now_;
  for (Seat& seat : seats_.all()) seat.wait_until += pause;
  stuck_.forgive(pause);
}

void SchedulerMachine::check(TimePoint now) {
  next_check_ = now + beat_interval_for(config_.node_timeout);
  next_doubt_.reset();
  if (now >= status_until_) status_.reset();
  if (phase_ == Phase::telling) {
    if (now >= told_until_) untold_.clear();
    return;
  }
  check_peers();
  if (config_.recovers) check_recovery();
  if (phase_ == Phase::running) check_stuck();
  if (phase_ == Phase::forming) check_forming();
}

// Several may be dead at once; without recovery the first one ends the job.
void SchedulerMachine::check_peers() {
  std::vector<std::pair<PeerId, std::string>> dead;
  for (auto& [id, peer] : peers_) {
    if (peer.has_left()) continue;
    if (peer.doubted_until && now_ >= *peer.doubted_until) {
      dead.emplace_back(id,
                        peer.seems_ended() ? how_it_ended(peer.process.status) : "its connection was lost");
    } else if (now_ - peer.heard >= config_.node_timeout) {
      dead.emplace_back(id, fmt::format("no heartbeat came for {:.3g} s (MS_NODE_TIMEOUT)",
                                        in_seconds(config_.node_timeout)));
    } else if (peer.doubted_until) {
      next_doubt_ = std::min(next_doubt_.value_or(*peer.doubted_until), *peer.doubted_until);
    }
  }
  for (const auto& [id, how] : dead)
    if (const auto found = peers_.find(id); found != peers_.end()) declare_dead(id, found->second, how);
}

// --- the end -----------------------------------------------------------------------------------------------

void SchedulerMachine::doubt(Peer& peer, Duration time) {
  const TimePoint until = now_ + time;
  peer.doubted_until = std::min(peer.doubted_until.value_or(until), until);
  next_doubt_ = std::min(next_doubt_.value_or(until), until);
}

void SchedulerMachine::declare_dead(PeerId id, Peer& peer, const std::string& how) {
  peer.state = PeerState::dead;
  untold_.erase(id);
  if (phase_ == Phase::forming) attempts_.gone(peer.member, how, now_);
  if (config_.recovers && phase_ != Phase::telling) return lose(id, how);
  fail(death_of(peer, how));
}

Failure SchedulerMachine::death_of(const Peer& peer, const std::string& how) const {
  const auto step = peer.said.step == no_step ? std::string("it had reported no step")
                                              : fmt::format("its last known step was {}", peer.said.step);
  const auto when = phase_ == Phase::forming ? " before every process had come" : "";
  return {Code::peer_lost, fmt::format("{} is gone{}: {}; {}", describe(peer), when, how, step),
          exit_code_peer_lost};
}

// The first failure is the job's; what follows from it is not news.
void SchedulerMachine::fail(Failure failure) {
  if (failure_ || phase_ == Phase::telling) return;
  if (phase_ == Phase::forming && !is_complete()) failure.message += ": " + whole_table();
  failure_ = std::move(failure);
  end_job();
}

void SchedulerMachine::end_job() {
  phase_ = Phase::telling;
  told_until_ = now_ + telling_time;
  next_doubt_.reset();
  // A job without a roster has done nothing that is worth going on with, unless its log was lost: that it was
  // done is kept then, and who goes on with it otherwise are its processes.
  if (config_.recovers && !roster_ && !failure_) record_job();
  if (config_.recovers && (roster_ || !failure_)) record(record::Ended{failure_});
  for (auto& [id, peer] : peers_) {
    if (!peer.has_left() && peer.is_connected()) send(id, message::Ended{failure_});
    if (!peer.is_gone()) untold_.insert(id);
  }
}

void SchedulerMachine::end_if_all_told() {
  if (phase_ != Phase::telling || !untold_.empty()) return;
  phase_ = Phase::ended;
  actions_.push_back(scheduler_action::End{failure_});
}

// --- small things ------------------------------------------------------------------------------------------

std::uint32_t SchedulerMachine::wanted(Role role) const {
  return role == Role::worker ? config_.worker_num : config_.server_num;
}

void SchedulerMachine::send(PeerId id, MessageBody body) {
  actions_.push_back(scheduler_action::Send{id, {config_.job_id, epoch_, std::move(body)}});
}

std::shared_ptr<const Message> SchedulerMachine::message_of(MessageBody body) const {
  return std::make_shared<const Message>(Message{config_.job_id, epoch_, std::move(body)});
}

void SchedulerMachine::share(PeerId id, std::shared_ptr<const Message> message) {
  actions_.push_back(scheduler_action::Share{id, std::move(message)});
}

void SchedulerMachine::refuse(PeerId id, const std::string& reason) {
  send(id,
       message::Refuse{{Code::refused, "the scheduler refused this process: " + reason, exit_code_refused}});
  actions_.push_back(scheduler_action::Close{id});
  forget_observer(id);
}

void SchedulerMachine::record(Record record) {
  if (!is_recorded_) return;
  actions_.push_back(scheduler_action::Record{std::move(record)});
}

void SchedulerMachine::log(log::Level level, std::string text) {
  actions_.push_back(scheduler_action::Log{level, std::move(text)});
}

}  // namespace muster::cluster
