#include "muster/cluster/scheduler.h"

#include <fmt/format.h>

#include <utility>

#include "muster/cluster/scheduler/departure.h"
#include "muster/cluster/scheduler/job.h"
#include "muster/cluster/scheduler/registration.h"
#include "muster/cluster/scheduler/resume.h"
#include "muster/cluster/wire.h"

namespace muster::cluster {
namespace {

constexpr Duration rejection_lines_interval = std::chrono::seconds(10);

// What did not come as a message, whose texts are read so (wire.h).
scheduler_event::Rejected as_shown(scheduler_event::Rejected event) {
  event.address = printable(event.address);
  event.reason = printable(event.reason);
  if (event.claims) event.claims->node_id = printable(event.claims->node_id);
  return event;
}

}  // namespace

// Hands events and the time to those in the job whom they concern, the phase that is current first.
class SchedulerMachine::Dispatcher {
 public:
  Dispatcher(SchedulerConfig config, TimePoint now)
      : job_(std::move(config), now), next_check_(now + beat_interval()) {}

  SchedulerActions step(const SchedulerEvent& event, TimePoint now);
  TimePoint deadline() const;
  const Job& job() const { return job_; }

 private:
  void handle(const scheduler_event::Received& event);
  void handle(const scheduler_event::Closed& event);
  void handle(const scheduler_event::Exited& event) { job_.liveness.exited(event.peer, event.status); }
  void handle(const scheduler_event::Rejected& event);
  void handle(const scheduler_event::Interrupted&);
  void handle(const scheduler_event::Tick&) {}

  void register_node(PeerId id, const Message& message, const message::Register& request);
  bool can_say(const Peer& peer, const Message& message) const;
  void handle(PeerId id, Peer& peer, const message::Beat& beat, std::uint64_t epoch);
  message::Beat answer_to(PeerId id, Peer& peer, const message::Beat& beat, std::uint64_t epoch) const;
  void catch_up(PeerId id, Peer& peer, std::uint64_t epoch);
  void handle(PeerId id, Peer& peer, const message::Leave& leave);
  void failed(PeerId id, const Peer& peer, const message::Leave& leave);

  void check();
  void settle();
  void forgive_own_pause(Duration pause);
  Duration beat_interval() const { return beat_interval_for(job_.config.node_timeout); }

  Job job_;
  TimePoint next_check_;  // of everything that is looked at every beat
  TimePoint next_rejection_line_ = {};
};

SchedulerActions SchedulerMachine::Dispatcher::step(const SchedulerEvent& event, TimePoint now) {
  if (job_.phase().is_over()) return {};
  const Duration pause = now - std::exchange(job_.now, now);
  if (const auto saved = std::exchange(job_.config.saved, std::nullopt)) resume(job_, *saved);
  if (pause > 2 * beat_interval() + std::chrono::milliseconds(250)) forgive_own_pause(pause);
  std::visit([this](const auto& it) { handle(it); }, event);
  if (now >= deadline()) check();
  settle();
  return job_.take_actions();
}

TimePoint SchedulerMachine::Dispatcher::deadline() const {
  if (job_.phase().is_over()) return TimePoint::max();
  if (job_.config.saved) return job_.now;
  const TimePoint next = std::min(next_check_, job_.phase().deadline());
  if (job_.is(JobState::ended)) return next;
  return std::min({next, job_.liveness.deadline(), job_.seating.deadline()});
}

void SchedulerMachine::Dispatcher::check() {
  next_check_ = job_.now + beat_interval();
  job_.observers.check();
  if (!job_.is(JobState::ended)) job_.liveness.check();
  job_.phase().check();
}

void SchedulerMachine::Dispatcher::settle() {
  if (job_.config.recovers) job_.seating.settle();
  for (const Phase* settled = nullptr; settled != &job_.phase();) {  // it may go on to the next one
    settled = &job_.phase();
    job_.phase().settle();
  }
}

void SchedulerMachine::Dispatcher::forgive_own_pause(Duration pause) {
  job_.liveness.forgive(pause);
  job_.seating.forgive();
  job_.phase().forgive(pause);
  for (Seat& seat : job_.seats.all()) seat.wait_until += pause;
  job_.stuck.forgive(pause);
}

// --- connections -------------------------------------------------------------------------------------------

void SchedulerMachine::Dispatcher::handle(const scheduler_event::Closed& event) {
  job_.observers.forget(event.peer);
  job_.seating.closed(event.peer);
  Peer* peer = job_.peers.find(event.peer);
  if (peer == nullptr) return;
  job_.phase().told(event.peer);
  job_.liveness.closed(event.peer, *peer);
}

void SchedulerMachine::Dispatcher::handle(const scheduler_event::Rejected& rejected) {
  const scheduler_event::Rejected event = as_shown(rejected);
  if (const Peer* known = job_.peers.find(event.peer))
    return job_.log(log::Level::warning,
                    fmt::format("the connection of {} broke: {}", describe(*known), event.reason));
  const bool is_news = event.claims
                           ? job_.attempts.refused(*event.claims, event.reason, job_.now)
                           : job_.attempts.note_rejected(event.address, event.reason, job_.now, event.count);
  if (job_.phase().shows_rejection(is_news)) return;
  if (!is_news || job_.now < next_rejection_line_) return;
  next_rejection_line_ = job_.now + rejection_lines_interval;
  job_.log(log::Level::warning,
           fmt::format("a connection from {} was closed: {}", event.address, event.reason));
}

void SchedulerMachine::Dispatcher::handle(const scheduler_event::Interrupted&) {
  job_.fail({Code::aborted, "the scheduler was interrupted", exit_code_interrupted});
}

// --- messages ----------------------------------------------------------------------------------------------

void SchedulerMachine::Dispatcher::handle(const scheduler_event::Received& event) {
  const auto& [id, message] = event;
  if (const auto* request = std::get_if<message::Register>(&message.body))
    return register_node(id, message, *request);
  Peer* peer = job_.peers.find(id);
  if (peer == nullptr) {
    if (job_.observers.serve(id, message) || job_.seating.hears(id, message)) return;
    return job_.refuse(id, fmt::format("it has not registered with epoch {} of this job", job_.ledger.epoch));
  }
  if (message.job_id != job_.ledger.job_id) return;  // a stale word changes nothing
  // In a job that recovers, a registered process may say what concerns no epoch while the next one begins.
  if (message.epoch != job_.ledger.epoch && !job_.config.recovers) return;
  if (!can_say(*peer, message)) return;
  job_.liveness.heard(*peer);
  peer->said.epoch = message.epoch;
  std::visit(
      Overloaded{
          [&](const message::Beat& beat) { handle(id, *peer, beat, message.epoch); },
          [&](const message::PeerGone& gone) { job_.liveness.reported(*peer, gone); },
          [&](const message::Leave& leave) { handle(id, *peer, leave); },
          [&](const message::EndedAck&) { job_.phase().told(id); },
          [&](const message::Rejoin& rejoin) { job_.phase().rejoined(id, *peer, rejoin, message.epoch); },
          [&](const message::LinkLost& lost) { job_.phase().link_lost(*peer, lost, message.epoch); },
          [&](const message::Stacks& stacks) { job_.observers.stacks.answered(id, stacks); },
          [&](const message::Parameters& said) {
            if (job_.is(JobState::running) && message.epoch == job_.ledger.epoch)
              job_.parameters.note(*peer, said.report);
          },
          [](const auto&) {}},  // what only a scheduler says
      message.body);
}

void SchedulerMachine::Dispatcher::register_node(PeerId id, const Message& message,
                                                 const message::Register& request) {
  job_.observers.forget(id);
  if (Peer* known = job_.peers.find(id)) {  // said twice
    if (!known->has_left() && job_.is(JobState::forming)) job_.greet(id, *known);
    return;
  }
  if (job_.config.recovers) return job_.seating.register_node(id, message, request);
  auto reason = reason_to_refuse(job_, message, request);
  if (!reason)
    reason = job_.phase().admit(id, {.member = request.member,
                                     .key = key_of(request.secret, request.member),
                                     .strict = request.strict,
                                     .traits = request.traits});
  if (reason) job_.turn_down(id, request.member, *reason);
}

// What a process that was here before it has said is not its word; and only who has part in an epoch is done
// with it, or loses it.
bool SchedulerMachine::Dispatcher::can_say(const Peer& peer, const Message& message) const {
  if (message.epoch < peer.epoch_accepted) return false;
  const auto* leave = std::get_if<message::Leave>(&message.body);
  const bool is_of_member = (leave != nullptr && leave->status == 0) ||
                            std::holds_alternative<message::Rejoin>(message.body) ||
                            std::holds_alternative<message::LinkLost>(message.body);
  return !is_of_member || message.epoch >= peer.epoch_member;
}

void SchedulerMachine::Dispatcher::handle(PeerId id, Peer& peer, const message::Beat& beat,
                                          std::uint64_t epoch) {
  const bool goes_back = job_.config.recovers;  // to the last recovery point
  if (beat.step != no_step && (peer.said.step == no_step || beat.step > peer.said.step || goes_back)) {
    if (peer.said.step != beat.step) {
      job_.log(log::Level::debug, fmt::format("{} has done step {}", describe(peer), beat.step));
      job_.links_lost_in_a_row = 0;
    }
    peer.said.step = beat.step;
  }
  job_.stuck.note(peer, beat, epoch);
  job_.slow.note(peer, beat, epoch);
  job_.note_progress(peer, beat.progress);
  job_.send(id, answer_to(id, peer, beat, epoch));
  if (job_.config.recovers) catch_up(id, peer, epoch);
}

message::Beat SchedulerMachine::Dispatcher::answer_to(PeerId id, Peer& peer, const message::Beat& beat,
                                                      std::uint64_t epoch) const {
  message::Beat answer;
  if (!job_.config.recovers) return answer;
  if (job_.is(JobState::running) && epoch == job_.ledger.epoch) answer.left = job_.ledger.left_in_epoch;
  if (!beat.leaves) return answer;
  peer.said.asks_to_leave = true;
  answer.waits_for = who_may_need(job_, id);
  answer.leaves = !answer.waits_for;
  return answer;
}

// A word to it, or from it, may have been lost with a connection.
void SchedulerMachine::Dispatcher::catch_up(PeerId id, Peer& peer, std::uint64_t epoch) {
  if (peer.has_left() || job_.now - peer.epoch_told < beat_interval()) return;
  if (job_.phase().has_missed(peer, epoch)) job_.tell_of_epoch(id, peer);
}

void SchedulerMachine::Dispatcher::handle(PeerId id, Peer& peer, const message::Leave& leave) {
  const bool is_news = !peer.has_left();
  const bool has_begun = !job_.is(JobState::forming) && !job_.is(JobState::ended);
  if (is_news && has_begun && leave.status == 0 && job_.config.recovers)
    job_.record(record::Left{peer.member.role, peer.member.rank});
  job_.send(id, message::LeaveAck{});
  if (!is_news) return;
  job_.slow.clear();
  peer.state = PeerState::left;
  peer.doubted_until.reset();
  if (leave.step != no_step) peer.said.step = leave.step;
  job_.phase().told(id);
  if (job_.is(JobState::ended)) return;
  if (leave.status == 0)
    job_.phase().done(id, peer);
  else
    failed(id, peer, leave);
}

void SchedulerMachine::Dispatcher::failed(PeerId id, const Peer& peer, const message::Leave& leave) {
  const SchedulerConfig& config = job_.config;
  if (config.restarts_failed && config.recovers && leave.status != exit_code_interrupted)
    return job_.seating.lose(id, fmt::format("it failed: {}", leave.reason));
  const int exit_code = leave.status > 0 && leave.status < 256 ? leave.status : 1;
  job_.fail({Code::aborted, fmt::format("{} failed: {}", describe(peer), leave.reason), exit_code});
}

// --- the machine -------------------------------------------------------------------------------------------

SchedulerMachine::SchedulerMachine(SchedulerConfig config, TimePoint now)
    : dispatcher_(std::make_unique<Dispatcher>(std::move(config), now)) {}

SchedulerMachine::~SchedulerMachine() = default;

SchedulerActions SchedulerMachine::step(const SchedulerEvent& event, TimePoint now) {
  return dispatcher_->step(event, now);
}

TimePoint SchedulerMachine::deadline() const { return dispatcher_->deadline(); }

bool SchedulerMachine::ended() const { return dispatcher_->job().phase().is_over(); }

bool SchedulerMachine::is_needed() const {
  const Job& job = dispatcher_->job();
  return job.is(JobState::running) || job.is(JobState::ended);
}

const std::optional<Failure>& SchedulerMachine::failure() const { return dispatcher_->job().ledger.failure; }

}  // namespace muster::cluster
