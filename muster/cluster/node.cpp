#include "muster/cluster/node.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds retry_min{10};
constexpr milliseconds retry_max = seconds(1);
constexpr milliseconds attempt_time = seconds(3);
constexpr milliseconds leave_time = seconds(2);
constexpr milliseconds answer_time = seconds(5);  // of a scheduler that may be a stopped one
constexpr int beats_of_slower_steps = 10;         // for one of usual steps

std::string_view advice(Code code) {
  switch (code) {
    case Code::io:
      return "Is MS_SCHED_HOST right, and is there a route to it from this host?";
    case Code::timeout:
      return "Is MS_SCHED_HOST right, is that host up, and does no firewall drop what goes to MS_SCHED_PORT?";
    case Code::corrupt:
      return "Does another program listen at MS_SCHED_PORT?";
    default:
      return "Is it started, and are MS_SCHED_HOST and MS_SCHED_PORT the same there?";
  }
}

// Of all members, or of `self` and as many behind it as one registration names.
std::vector<std::uint64_t> told_incarnations(const Roster& roster, const Member& self) {
  const std::size_t count = roster.workers.size() + roster.servers.size();
  const std::size_t own = self.rank + (self.role == Role::server ? roster.workers.size() : 0);
  std::vector<std::uint64_t> told;
  for (std::size_t i = 0; i < std::min(count, members_told_max); ++i) {
    const std::size_t place = (own + i) % count;
    const std::size_t worker_num = roster.workers.size();
    told.push_back(place < worker_num ? roster.workers[place].incarnation
                                      : roster.servers[place - worker_num].incarnation);
  }
  return told;
}

}  // namespace

NodeMachine::NodeMachine(NodeConfig config, TimePoint now)
    : config_(std::move(config)),
      beat_interval_(beat_interval_for(config_.node_timeout)),
      now_(now),
      start_(now),
      phase_deadline_(now),
      next_beat_(now),
      last_beat_(now),
      announcements_(now),
      next_progress_(now),
      heard_(now) {}

NodeActions NodeMachine::step(const NodeEvent& event, const NodeReport& report, TimePoint now) {
  // This process may have been stopped; what the scheduler said meanwhile may not have been read yet.
  const Duration pause = now - std::exchange(now_, now);
  if (pause > 2 * beat_interval_ + milliseconds(250)) {
    heard_ = now;
    if (needed_until_) *needed_until_ += pause;
    if (leaves_at_) *leaves_at_ += pause;
    if (phase_ == Phase::registering || phase_ == Phase::accepted) phase_deadline_ += pause;
  }
  // What a lost folder will be missed for: the scheduler hears of the first point at once.
  // And a worker that leaves waits for those whose folders lack something.
  if ((report.progress.has_point && !report_.progress.has_point) ||
      report.progress.kept_calls > report_.progress.kept_calls)
    next_beat_ = now_;
  report_ = report;
  if (report.is_slower) next_beat_ = std::min(next_beat_, std::max(now_, last_beat_ + beat_interval()));
  std::visit(
      Overloaded{[&](const node_event::Connected& e) { connected(e); },
                 [&](const node_event::Disconnected& e) { disconnected(e); },
                 [&](const node_event::Received& e) { received(e.message); },
                 [&](const node_event::Exited& e) { exited(e); },
                 [&](const node_event::Endpoint& e) { endpoint(e); },
                 [&](const node_event::LinkLost& e) { link_lost(e); },
                 [&](const node_event::Replaced& e) {
                   if (phase_ != Phase::ended) fail({Code::refused, e.reason, exit_code_refused});
                 },
                 [&](const node_event::Leave& e) { leave(e); },
                 [&](const node_event::Parameters& e) {
                   if (phase_ == Phase::running && has_connection_) send(message::Parameters{e.report});
                 },
                 [&](const node_event::Stacks& e) {
                   if (is_registered() && has_connection_) send(message::Stacks{e.text});
                 },
                 [&](const node_event::Interrupted&) { interrupted(); }, [](const node_event::Tick&) {}},
      event);
  if (now_ >= deadline()) check();
  return std::exchange(actions_, {});
}

bool NodeMachine::is_registered() const {
  return phase_ == Phase::accepted || phase_ == Phase::running || phase_ == Phase::leaving;
}

TimePoint NodeMachine::deadline() const {
  if (phase_ == Phase::ended) return TimePoint::max();
  TimePoint next = phase_ == Phase::running ? next_beat_ : phase_deadline_;
  if (is_registered()) next = std::min(next, next_beat_);
  if (scheduler_doubted_until_) next = std::min(next, *scheduler_doubted_until_);
  if (needed_until_) next = std::min(next, *needed_until_);
  if (leaves_at_ && phase_ == Phase::running) next = std::min(next, *leaves_at_);
  // Often enough to tell a pause of this process from one in which no peer answers.
  if (needed_until_ || phase_ == Phase::registering) next = std::min(next, now_ + beat_interval_);
  const bool is_before_registration =
      phase_ == Phase::waiting || phase_ == Phase::connecting || phase_ == Phase::registering;
  if (is_before_registration && !is_member()) next = std::min(next, announcements_.due());
  return next;
}

// --- finding the scheduler ---------------------------------------------------------------------------------

void NodeMachine::connect() {
  phase_ = Phase::connecting;
  phase_deadline_ = now_ + attempt_time;
  actions_.push_back(node_action::Connect{});
}

void NodeMachine::connected(const node_event::Connected& event) {
  if (phase_ != Phase::connecting) return;
  has_connection_ = true;
  phase_ = Phase::registering;
  phase_deadline_ =
      now_ + (is_member() ? std::min(config_.receive_timeout, answer_time) : config_.receive_timeout);
  if (!is_member()) job_id_ = epoch_ = 0;
  send(registration(event.found));
}

// Who waits long finds more than when it came: points of those who had its place meanwhile.
message::Register NodeMachine::registration(const std::vector<FoundJob>& found) const {
  message::Register request{.member = config_.member,
                            .worker_num = config_.worker_num,
                            .server_num = config_.server_num,
                            .recovers = config_.recovers,
                            .epoch_lost = epoch_lost_,
                            .strict = config_.strict,
                            .traits = config_.traits,
                            .secret = config_.secret,
                            .memory = {.fresh = config_.fresh, .found = found}};
  if (is_member())
    request.memory = {.seed = roster_->seed,
                      .finished_calls = roster_->finished_calls,
                      .finished_collectives = roster_->finished_collectives,
                      .roster_epoch = roster_->epoch,
                      .incarnations = told_incarnations(*roster_, config_.member)};
  return request;
}

// Tries are dense at first, since the scheduler is most likely starting too: a quarter of the time already
// waited.
void NodeMachine::try_again(const std::string& reason, Code code) {
  why_no_scheduler_ = reason;
  why_no_scheduler_code_ = code;
  if (is_member()) return look_again();
  const Duration waited = now_ - start_;
  const auto limit = std::min(config_.retry_timeout, config_.topo_timeout);
  if (waited >= limit) {
    const auto variable =
        config_.retry_timeout < config_.topo_timeout ? "MS_CLUSTER_RETRY_NUM times 3 s" : "MS_TOPO_TIMEOUT";
    fail({Code::timeout,
          fmt::format("no scheduler could be reached at {} for {:.3g} s ({}): {}. {}", config_.scheduler,
                      in_seconds(limit), variable, reason, advice(code)),
          exit_code_timeout});
    return;
  }
  phase_ = Phase::waiting;
  const Duration pause = std::clamp<Duration>(waited / 4, retry_min, retry_max);
  phase_deadline_ = std::min(now_ + pause, start_ + limit);
}

// What this process itself can see of why it is not yet part of the job.
void NodeMachine::say_why_not_registered() {
  if (is_member() || now_ < announcements_.due()) return;
  std::string state = why_no_scheduler_;
  Code code = why_no_scheduler_code_;
  if (phase_ == Phase::registering) {
    state = "it accepts connections, but does not answer the registration";
    code = Code::corrupt;
  } else if (state.empty()) {
    state = "timed out: nothing answers";
    code = Code::timeout;
  }
  if (!announcements_.says(state, now_)) return;
  log(log::Level::warning, fmt::format("waiting for the scheduler at {} since {:.3g} s: {}. {}",
                                       config_.scheduler, in_seconds(now_ - start_), state, advice(code)));
}

void NodeMachine::disconnected(const node_event::Disconnected& event) {
  const std::string& reason = event.reason;
  has_connection_ = false;
  const bool is_new = phase_ == Phase::connecting || phase_ == Phase::registering;
  if (is_new && event.code == Code::refused && !is_member())
    return fail({Code::refused, reason, exit_code_refused});
  switch (phase_) {
    case Phase::connecting:
    case Phase::registering:
      try_again(reason, event.code);
      return;
    case Phase::accepted:
    case Phase::running:
      scheduler_lost(fmt::format("its connection was lost ({})", reason));
      return;
    case Phase::leaving:
      if (is_member() && leave_)
        look_for_scheduler(reason);
      else
        left();
      return;
    case Phase::waiting:
    case Phase::ended:
      return;
  }
}

// --- the scheduler's words ---------------------------------------------------------------------------------

void NodeMachine::received(const Message& message) {
  if (!has_connection_ || phase_ == Phase::ended) return;
  // Of which job it is, a scheduler may find out while others come.
  const bool is_new = phase_ == Phase::registering || (config_.recovers && phase_ == Phase::accepted);
  if (is_new && !is_member()) {
    job_id_ = message.job_id;
    epoch_ = message.epoch;
  } else if (!takes(message)) {
    return;  // a stale word changes nothing
  }
  if (is_behind(message)) return leave_scheduler_behind(message.epoch);
  heard_ = now_;
  std::visit(Overloaded{[&](const message::Accept& accept) { accepted(accept); },
                        [&](const message::Refuse& refuse) { fail(refuse.failure); },
                        [&](const message::Waiting& waiting) { wait_for_others(waiting); },
                        [&](const message::RosterReady& ready) { formed(ready, message.epoch); },
                        [&](const message::Stuck& stuck) { log(log::Level::warning, stuck.text); },
                        [&](const message::AskStacks& ask) {
                          if (is_registered()) actions_.push_back(node_action::TakeStacks{ask.is_answered});
                        },
                        [&](const message::EpochLost& lost) { epoch_lost(lost, message.epoch); },
                        [&](const message::LeaveAck&) {
                          if (phase_ != Phase::leaving) return;
                          left();
                        },
                        [&](const message::Ended& ended) {
                          send(message::EndedAck{});
                          end(ended.failure);
                        },
                        [&](const message::Beat& answer) { answered(answer, message.epoch); },
                        [](const auto&) {}},  // what only a node says
             message.body);
}

void NodeMachine::wait_for_others(const message::Waiting& waiting) {
  // The answer to the registration takes a while, which this says.
  if (phase_ == Phase::registering) phase_deadline_ = now_ + config_.receive_timeout;
  if (phase_ == Phase::registering || phase_ == Phase::accepted || epoch_lost_)
    log(log::Level::warning, waiting.text);
}

void NodeMachine::accepted(const message::Accept& accept) {
  if (phase_ != Phase::registering) return;
  phase_ = Phase::accepted;
  beat_interval_ = std::clamp(accept.beat_interval, milliseconds(10), beat_interval_);
  next_beat_ = now_ + beat_interval_;
  // The scheduler watches this time; the answer's time on top is for the case that its word got lost.
  phase_deadline_ = now_ + config_.topo_timeout + config_.receive_timeout;
  if (config_.recovers) phase_deadline_ += config_.node_timeout;  // in which others may come back
  scheduler_watched_ = shares_pids(accept.process_space, config_.member.process_space) && accept.pid > 0;
  if (scheduler_watched_ && std::exchange(scheduler_pid_, accept.pid) != accept.pid)
    actions_.push_back(
        node_action::Watch{Role::scheduler, 0, accept.pid, static_cast<std::uint64_t>(accept.pid)});
  if (is_member()) found_scheduler();
}

void NodeMachine::formed(const message::RosterReady& ready, std::uint64_t epoch) {
  if (is_member() ? epoch <= epoch_ : phase_ != Phase::registering && phase_ != Phase::accepted) return;
  const Member& me = config_.member;
  const auto& members = me.role == Role::worker ? ready.roster->workers : ready.roster->servers;
  const auto self = std::find_if(members.begin(), members.end(), [&](const Member& member) {
    // A process without MS_NODE_ID may have got the id of the one whose place it took.
    return member.incarnation == me.incarnation && (me.incarnation != 0 || member.node_id == me.node_id);
  });
  if (self == members.end()) {
    fail({Code::internal,
          fmt::format("the roster of the scheduler at {} does not name this node", config_.scheduler), 1});
    return;
  }
  epoch_ = epoch;
  config_.member.rank = self->rank;
  epoch_lost_ = false;
  gone_.clear();
  link_lost_.reset();
  if (phase_ != Phase::leaving) phase_ = Phase::running;
  next_beat_ = now_ + beat_interval_;
  roster_ = ready.roster;
  actions_.push_back(node_action::Formed{roster_, self->rank});
  watch_neighbours(self->rank);
}

// Each process watches the next ones of its host, in a ring: unless all die, each death is seen.
void NodeMachine::watch_neighbours(std::uint32_t own_rank) {
  constexpr std::size_t watched_max = 2;
  std::vector<const Member*> ring;
  std::size_t own = 0;
  for (const auto* group : {&roster_->workers, &roster_->servers}) {
    for (const Member& member : *group) {
      const bool is_here = shares_pids(member.process_space, config_.member.process_space) && member.pid > 0;
      if (!is_here || member.has_left) continue;
      if (member.role == config_.member.role && member.rank == own_rank) own = ring.size();
      ring.push_back(&member);
    }
  }
  for (std::size_t i = 1; i <= watched_max && i < ring.size(); ++i) {
    const Member& member = *ring[(own + i) % ring.size()];
    const bool is_known = std::find(watched_.begin(), watched_.end(), member.incarnation) != watched_.end();
    if (config_.recovers && is_known) continue;  // in the epoch before
    watched_.push_back(member.incarnation);
    actions_.push_back(node_action::Watch{member.role, member.rank, member.pid, member.incarnation});
  }
}

// --- time --------------------------------------------------------------------------------------------------

void NodeMachine::check() {
  if (needed_until_ && now_ >= *needed_until_ && give_up_scheduler()) return;
  switch (phase_) {
    case Phase::waiting:
      if (now_ >= phase_deadline_) connect();
      return say_why_not_registered();
    case Phase::connecting:
      if (now_ >= phase_deadline_) {
        actions_.push_back(node_action::Disconnect{});
        try_again(fmt::format("timed out: nothing answers within {:.3g} s", in_seconds(attempt_time)),
                  Code::timeout);
      }
      return say_why_not_registered();
    case Phase::registering:
      if (now_ < phase_deadline_) return say_why_not_registered();
      if (is_member()) {
        drop_connection();
        return try_again("it does not answer");
      }
      fail({Code::timeout,
            fmt::format(
                "the scheduler at {} did not answer the registration for {:.3g} s (MS_RECEIVE_MSG_TIMEOUT)",
                config_.scheduler, in_seconds(config_.receive_timeout)),
            exit_code_timeout});
      return;
    case Phase::accepted:
      if (now_ >= phase_deadline_) {
        fail({Code::timeout,
              fmt::format(
                  "the scheduler at {} sent no roster within MS_TOPO_TIMEOUT and MS_RECEIVE_MSG_TIMEOUT",
                  config_.scheduler),
              exit_code_timeout});
        return;
      }
      break;
    case Phase::leaving:
      if (now_ >= phase_deadline_) {
        if (is_member() && leave_ && leave_->status == 0) {
          drop_connection();
          return look_for_scheduler("it does not answer");
        }
        left();
        return;
      }
      break;
    case Phase::running:
      break;
    case Phase::ended:
      return;
  }
  if (scheduler_doubted_until_ && now_ >= *scheduler_doubted_until_) {
    scheduler_lost(how_it_ended(scheduler_status_));
  } else if (now_ - heard_ >= config_.node_timeout) {
    scheduler_lost(
        fmt::format("no heartbeat came for {:.3g} s (MS_NODE_TIMEOUT)", in_seconds(config_.node_timeout)));
  } else if (leaves_at_ && now_ >= *leaves_at_ && phase_ == Phase::running) {
    log(log::Level::warning, "this process leaves now: it has waited for MS_NODE_TIMEOUT");
    say_goodbye(node_event::Leave(*leave_));
  } else if (now_ >= next_beat_) {
    next_beat_ = now_ + beat_interval();
    if (leaves_at_) {
      next_beat_ = now_ + pause_of_asking_;
      pause_of_asking_ = std::min<Duration>(2 * pause_of_asking_, beat_interval_);
    }
    send(beat());
  }
}

Duration NodeMachine::beat_interval() const {
  return report_.is_slower ? beat_interval_ / beats_of_slower_steps : beat_interval_;
}

message::Beat NodeMachine::beat() {
  if (!beat_sent_) beat_sent_ = now_;
  last_beat_ = now_;
  message::Beat beat{.step = report_.step,
                     .progress = report_.progress,
                     .activity = report_.activity,
                     .leaves = leaves_at_.has_value(),
                     .stats = report_.stats};
  if (!beat.stats) return beat;
  beat.stats->round_trip_us =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(round_trip_).count());
  leave_out_told(beat.stats->marks);
  return beat;
}

void NodeMachine::leave_out_told(std::vector<StepMark>& marks) {
  const auto told = std::ranges::find(marks, step_told_, &StepMark::step);
  if (told != marks.end()) marks.erase(marks.begin(), told + 1);
  if (!marks.empty()) step_told_ = marks.back().step;
}

void NodeMachine::answered(const message::Beat& answer, std::uint64_t epoch) {
  if (beat_sent_) round_trip_ = now_ - *std::exchange(beat_sent_, std::nullopt);
  if (!is_member()) return;
  if (answer.left && epoch == epoch_ && !epoch_lost_)
    actions_.push_back(node_action::PeerLeft{epoch, *answer.left});
  if (!leaves_at_ || phase_ != Phase::running) return;
  if (answer.leaves) return say_goodbye(node_event::Leave(*leave_));
  if (answer.waits_for) may_not_leave(*answer.waits_for);
}

void NodeMachine::exited(const node_event::Exited& event) {
  const bool is_connected = phase_ == Phase::accepted || phase_ == Phase::running;
  if (event.role != Role::scheduler) {
    gone_.push_back({event.role, event.rank, event.incarnation, event.status});
    if (is_connected) send(gone_.back());
    return;
  }
  const bool is_this_one =
      event.incarnation == 0 || event.incarnation == static_cast<std::uint64_t>(scheduler_pid_);
  if (is_this_one) {
    scheduler_pid_ = 0;  // another one may get this number
    scheduler_status_ = event.status;
  }
  if (is_connected && is_this_one && !scheduler_doubted_until_)
    scheduler_doubted_until_ = now_ + last_words_time;
}

// --- the end -----------------------------------------------------------------------------------------------

void NodeMachine::leave(const node_event::Leave& event) {
  if (phase_ == Phase::leaving || leave_) return;
  const bool is_connected = phase_ == Phase::accepted || phase_ == Phase::running;
  // Who is done may be needed by others, in a job that recovers.
  const bool asks = is_member() && event.status == 0 && config_.member.role == Role::worker;
  if (is_connected && !asks) return say_goodbye(event);
  if (!is_member() || phase_ == Phase::ended) return left();  // no one to tell
  leave_ = event;
  if (is_connected) return ask_to_leave();
  needed_until_ = now_ + (asks ? config_.node_timeout : leave_time);
}

void NodeMachine::say_goodbye(const node_event::Leave& event) {
  phase_ = Phase::leaving;
  phase_deadline_ = now_ + leave_time;
  scheduler_doubted_until_.reset();
  leaves_at_.reset();
  leave_ = event;
  if (is_member()) send(beat());  // what others may rely on
  send(message::Leave{event.status, report_.step, event.reason});
}

void NodeMachine::interrupted() {
  if (phase_ == Phase::leaving) return;
  if (phase_ == Phase::ended) return left();  // who was interrupted waits for that
  const Failure failure{Code::aborted, "interrupted", exit_code_interrupted};
  const bool is_known = is_registered() || is_member();
  if (!std::exchange(job_ended_, true)) actions_.push_back(node_action::JobEnded{failure});
  if (is_known)
    leave({failure.exit_code, failure.message});
  else
    leave({});
}

void NodeMachine::left() {
  drop_connection();
  needed_until_.reset();
  leaves_at_.reset();
  phase_ = Phase::ended;
  actions_.push_back(node_action::Left{});
}

void NodeMachine::scheduler_lost(const std::string& how) {
  if (config_.recovers && phase_ != Phase::ended) return look_for_scheduler(how);
  fail_without_scheduler(how);
}

void NodeMachine::fail_without_scheduler(const std::string& how) {
  const auto step = report_.step != no_step ? fmt::format("this node's last step was {}", report_.step)
                    : is_member()           ? fmt::format("no step was done in epoch {}", epoch_)
                                            : std::string("no step was done");
  fail({Code::peer_lost, fmt::format("the scheduler at {} is gone: {}; {}", config_.scheduler, how, step),
        exit_code_peer_lost});
}

void NodeMachine::fail(Failure failure) { end(std::move(failure)); }

void NodeMachine::end(std::optional<Failure> failure) {
  const bool was_leaving = phase_ == Phase::leaving || leave_;
  drop_connection();
  phase_ = Phase::ended;
  scheduler_doubted_until_.reset();
  needed_until_.reset();
  leaves_at_.reset();
  if (!std::exchange(job_ended_, true)) actions_.push_back(node_action::JobEnded{std::move(failure)});
  if (was_leaving) actions_.push_back(node_action::Left{});
}

// --- small things ------------------------------------------------------------------------------------------

void NodeMachine::drop_connection() {
  if (has_connection_ || phase_ == Phase::connecting) actions_.push_back(node_action::Disconnect{});
  has_connection_ = false;
  beat_sent_.reset();
}

void NodeMachine::send(MessageBody body) {
  actions_.push_back(node_action::Send{{job_id_, epoch_, std::move(body)}});
}

void NodeMachine::log(log::Level level, std::string text) {
  actions_.push_back(node_action::Log{level, std::move(text)});
}

}  // namespace muster::cluster
