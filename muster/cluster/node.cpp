#include "muster/cluster/node.h"

#include <fmt/format.h>

namespace muster::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds retry_min{10};
constexpr milliseconds retry_max = seconds(1);
constexpr milliseconds attempt_time = seconds(3);
constexpr milliseconds leave_time = seconds(2);
constexpr milliseconds progress_first = seconds(5);
constexpr milliseconds progress_interval = seconds(30);

double in_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

NodeMachine::NodeMachine(NodeConfig config, TimePoint now)
    : config_(std::move(config)),
      beat_interval_(beat_interval_for(config_.node_timeout)),
      now_(now),
      start_(now),
      phase_deadline_(now),
      next_beat_(now),
      next_progress_(now + progress_first),
      heard_(now) {}

NodeActions NodeMachine::step(const NodeEvent& event, std::uint64_t last_step, TimePoint now) {
  // This process may have been stopped; what the scheduler said meanwhile may not have been read yet.
  if (now - std::exchange(now_, now) > 2 * beat_interval_ + milliseconds(250)) heard_ = now;
  last_step_ = last_step;
  std::visit(
      Overloaded{[&](const node_event::Connected&) { connected(); },
                 [&](const node_event::Disconnected& e) { disconnected(e.reason); },
                 [&](const node_event::Received& e) { received(e.message); },
                 [&](const node_event::Exited& e) { exited(e); },
                 [&](const node_event::Leave& e) { leave(e); },
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
  return next;
}

// --- finding the scheduler ---------------------------------------------------------------------------------

void NodeMachine::connect() {
  phase_ = Phase::connecting;
  phase_deadline_ = now_ + attempt_time;
  actions_.push_back(node_action::Connect{});
}

void NodeMachine::connected() {
  if (phase_ != Phase::connecting) return;
  has_connection_ = true;
  phase_ = Phase::registering;
  phase_deadline_ = now_ + config_.receive_timeout;
  send(message::Register{config_.member, config_.worker_num, config_.server_num});
}

// Tries are dense at first, since the scheduler is most likely starting too: a quarter of the time already
// waited.
void NodeMachine::try_again(const std::string& reason) {
  const Duration waited = now_ - start_;
  const auto limit = std::min(config_.retry_timeout, config_.topo_timeout);
  if (waited >= limit) {
    const auto variable =
        config_.retry_timeout < config_.topo_timeout ? "MS_CLUSTER_RETRY_NUM times 3 s" : "MS_TOPO_TIMEOUT";
    fail({Code::timeout,
          fmt::format("no scheduler could be reached at {} for {:.3g} s ({}): {}. Is it started, and are "
                      "MS_SCHED_HOST "
                      "and MS_SCHED_PORT the same there?",
                      config_.scheduler, in_seconds(limit), variable, reason),
          exit_code_timeout});
    return;
  }
  phase_ = Phase::waiting;
  const Duration pause = std::clamp<Duration>(waited / 4, retry_min, retry_max);
  phase_deadline_ = std::min(now_ + pause, start_ + limit);
  if (now_ < next_progress_) return;
  next_progress_ = now_ + progress_interval;
  log(log::Level::warning, fmt::format("waiting for the scheduler at {} since {:.3g} s: {}",
                                       config_.scheduler, in_seconds(waited), reason));
}

void NodeMachine::disconnected(const std::string& reason) {
  has_connection_ = false;
  switch (phase_) {
    case Phase::connecting:
    case Phase::registering:
      try_again(reason);
      return;
    case Phase::accepted:
    case Phase::running:
      scheduler_lost(fmt::format("its connection was lost ({})", reason));
      return;
    case Phase::leaving:
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
  if (phase_ == Phase::registering) {
    job_id_ = message.job_id;
    epoch_ = message.epoch;
  } else if (message.job_id != job_id_ || message.epoch != epoch_) {
    return;  // a stale word changes nothing
  }
  heard_ = now_;
  std::visit(Overloaded{[&](const message::Accept& accept) { accepted(accept); },
                        [&](const message::Refuse& refuse) { fail(refuse.failure); },
                        [&](const message::Progress& progress) {
                          if (phase_ == Phase::accepted) log(log::Level::warning, progress.text);
                        },
                        [&](const message::RosterReady& ready) { formed(ready); },
                        [&](const message::LeaveAck&) {
                          if (phase_ != Phase::leaving) return;
                          left();
                        },
                        [&](const message::Ended& ended) {
                          send(message::EndedAck{});
                          end(ended.failure);
                        },
                        [](const auto&) {}},  // Beat, and what only a node says
             message.body);
}

void NodeMachine::accepted(const message::Accept& accept) {
  if (phase_ != Phase::registering) return;
  phase_ = Phase::accepted;
  beat_interval_ = std::clamp(accept.beat_interval, milliseconds(10), beat_interval_);
  next_beat_ = now_ + beat_interval_;
  // The scheduler watches this time; the answer's time on top is for the case that its word got lost.
  phase_deadline_ = now_ + config_.topo_timeout + config_.receive_timeout;
  scheduler_watched_ = shares_pids(accept.process_space, config_.member.process_space) && accept.pid > 0;
  if (scheduler_watched_) actions_.push_back(node_action::Watch{Role::scheduler, 0, accept.pid});
}

void NodeMachine::formed(const message::RosterReady& ready) {
  if (phase_ != Phase::registering && phase_ != Phase::accepted) return;
  const Role role = config_.member.role;
  const auto& members = role == Role::worker ? ready.roster->workers : ready.roster->servers;
  const auto self = std::find_if(members.begin(), members.end(), [&](const Member& member) {
    return member.node_id == config_.member.node_id;
  });
  if (self == members.end()) {
    fail({Code::internal,
          fmt::format("the roster of the scheduler at {} does not name this node", config_.scheduler), 1});
    return;
  }
  phase_ = Phase::running;
  next_beat_ = now_ + beat_interval_;
  roster_ = ready.roster;
  actions_.push_back(node_action::Formed{roster_, self->rank});
  watch_neighbours(self->rank);
}

// Each process watches the next ones of its host, in a ring: whoever dies, unless all do, someone sees it.
void NodeMachine::watch_neighbours(std::uint32_t own_rank) {
  constexpr std::size_t watched_max = 2;
  std::vector<const Member*> ring;
  std::size_t own = 0;
  for (const auto* group : {&roster_->workers, &roster_->servers}) {
    for (const Member& member : *group) {
      if (!shares_pids(member.process_space, config_.member.process_space) || member.pid <= 0) continue;
      if (member.role == config_.member.role && member.rank == own_rank) own = ring.size();
      ring.push_back(&member);
    }
  }
  for (std::size_t i = 1; i <= watched_max && i < ring.size(); ++i) {
    const Member& member = *ring[(own + i) % ring.size()];
    actions_.push_back(node_action::Watch{member.role, member.rank, member.pid});
  }
}

// --- time --------------------------------------------------------------------------------------------------

void NodeMachine::check() {
  switch (phase_) {
    case Phase::waiting:
      connect();
      return;
    case Phase::connecting:
      actions_.push_back(node_action::Disconnect{});
      try_again("no answer");
      return;
    case Phase::registering:
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
    scheduler_lost("it was killed or crashed");
  } else if (now_ - heard_ >= config_.node_timeout) {
    scheduler_lost(
        fmt::format("no heartbeat came for {:.3g} s (MS_NODE_TIMEOUT)", in_seconds(config_.node_timeout)));
  } else if (now_ >= next_beat_) {
    next_beat_ = now_ + beat_interval_;
    send(message::Beat{last_step_});
  }
}

void NodeMachine::exited(const node_event::Exited& event) {
  if (phase_ != Phase::accepted && phase_ != Phase::running) return;
  if (event.role != Role::scheduler)
    send(message::PeerGone{event.role, event.rank});
  else if (!scheduler_doubted_until_)
    scheduler_doubted_until_ = now_ + last_words_time;
}

// --- the end -----------------------------------------------------------------------------------------------

void NodeMachine::leave(const node_event::Leave& event) {
  if (phase_ == Phase::leaving) return;
  if (phase_ != Phase::accepted && phase_ != Phase::running) {  // nobody to tell
    left();
    return;
  }
  phase_ = Phase::leaving;
  phase_deadline_ = now_ + leave_time;
  scheduler_doubted_until_.reset();
  send(message::Leave{event.status, last_step_, event.reason});
}

void NodeMachine::interrupted() {
  if (phase_ == Phase::ended || phase_ == Phase::leaving) return;
  const Failure failure{Code::aborted, "interrupted", exit_code_interrupted};
  const bool is_known = is_registered();
  if (!std::exchange(job_ended_, true)) actions_.push_back(node_action::JobEnded{failure});
  if (is_known)
    leave({failure.exit_code, failure.message});
  else
    leave({});
}

void NodeMachine::left() {
  drop_connection();
  phase_ = Phase::ended;
  actions_.push_back(node_action::Left{});
}

void NodeMachine::scheduler_lost(const std::string& how) {
  const auto step = last_step_ == no_step ? std::string("no step was done")
                                          : fmt::format("this node's last step was {}", last_step_);
  fail({Code::peer_lost, fmt::format("the scheduler at {} is gone: {}; {}", config_.scheduler, how, step),
        exit_code_peer_lost});
}

void NodeMachine::fail(Failure failure) { end(std::move(failure)); }

void NodeMachine::end(std::optional<Failure> failure) {
  const bool was_leaving = phase_ == Phase::leaving;
  drop_connection();
  phase_ = Phase::ended;
  scheduler_doubted_until_.reset();
  if (!std::exchange(job_ended_, true)) actions_.push_back(node_action::JobEnded{std::move(failure)});
  if (was_leaving) actions_.push_back(node_action::Left{});
}

// --- small things ------------------------------------------------------------------------------------------

void NodeMachine::drop_connection() {
  if (has_connection_ || phase_ == Phase::connecting) actions_.push_back(node_action::Disconnect{});
  has_connection_ = false;
}

void NodeMachine::send(MessageBody body) {
  actions_.push_back(node_action::Send{{job_id_, epoch_, std::move(body)}});
}

void NodeMachine::log(log::Level level, std::string text) {
  actions_.push_back(node_action::Log{level, std::move(text)});
}

}  // namespace muster::cluster
