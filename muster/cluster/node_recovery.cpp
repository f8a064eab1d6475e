// What a node of a job that recovers does beyond the rest: it outlives its epoch, and its scheduler.
#include <fmt/format.h>

#include "muster/cluster/node.h"

namespace muster::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A scheduler that is started again is found soon; one that stays away is not worth many tries.
constexpr milliseconds pause_min{10};
constexpr milliseconds pause_at_first{100};
constexpr milliseconds pause_later = seconds(1);
constexpr milliseconds at_first = seconds(60);
constexpr milliseconds warning_interval = seconds(30);

}  // namespace

// Whether a word of the scheduler is for this node as it is now.
bool NodeMachine::takes(const Message& message) const {
  if (!config_.recovers) return message.job_id == job_id_ && message.epoch == epoch_;
  if (std::holds_alternative<message::Refuse>(message.body)) {
    // Who has accepted this node knows of its epoch: what was said before that is not about it as it is now.
    const bool is_stale = is_member() && is_registered() && message.epoch < epoch_;
    return message.job_id != job_id_ || !is_stale;
  }
  // Behind the epoch of this node: sent before the scheduler knew.
  const bool of_an_epoch = std::holds_alternative<message::EpochLost>(message.body) ||
                           std::holds_alternative<message::RosterReady>(message.body);
  return message.job_id == job_id_ && (!of_an_epoch || message.epoch >= epoch_);
}

// Of a scheduler that lives on, cut off, while another one has taken the job over. It has no say any more:
// this process looks for the other one.
bool NodeMachine::is_behind(const Message& message) const {
  return is_member() && phase_ == Phase::registering && message.job_id == job_id_ && message.epoch < epoch_ &&
         std::holds_alternative<message::Refuse>(message.body);
}

void NodeMachine::leave_scheduler_behind(std::uint64_t epoch) {
  drop_connection();
  try_again(fmt::format("the scheduler there knows of epoch {} only, and this is epoch {}", epoch, epoch_));
}

// --- the next epoch ----------------------------------------------------------------------------------------

void NodeMachine::epoch_lost(const message::EpochLost& lost, std::uint64_t epoch) {
  if (!is_member() || phase_ != Phase::running) return;
  const bool is_news = !epoch_lost_ || epoch > epoch_;
  epoch_lost_ = true;
  epoch_ = epoch;
  if (!is_news) {
    if (!endpoint_asked_) rejoin();  // the answer got lost
    return;
  }
  log(log::Level::warning, fmt::format("cluster epoch {} has ended: {}", epoch, lost.reason.message));
  if (config_.member.role == Role::server) return rejoin();  // no process connects to it
  if (!std::exchange(endpoint_asked_, true)) actions_.push_back(node_action::AskEndpoint{lost.reason});
}

void NodeMachine::endpoint(const node_event::Endpoint& event) {
  if (!std::exchange(endpoint_asked_, false) || phase_ == Phase::ended) return;
  if (!event.endpoint) {
    const Failure failure = failure_from(event.endpoint.error());
    if (!std::exchange(job_ended_, true)) actions_.push_back(node_action::JobEnded{failure});
    return leave({failure.exit_code, failure.message});
  }
  config_.member.data_port = event.endpoint->port;
  config_.member.local_name = event.endpoint->local_name;
  if (phase_ == Phase::running) rejoin();
}

void NodeMachine::rejoin() {
  send(message::Rejoin{{config_.member.data_port, config_.member.local_name}, report_.progress});
}

void NodeMachine::link_lost(const node_event::LinkLost& event) {
  if (!is_member() || epoch_lost_ || link_lost_ || event.epoch != epoch_) return;
  link_lost_ = message::LinkLost{event.reason};
  if (phase_ == Phase::running)
    send(*link_lost_);
  else if (!needed_until_)
    needed_until_ = now_ + config_.node_timeout;
}

// --- leaving -----------------------------------------------------------------------------------------------

// A worker whose disk has not taken the end of the last call may die, and then needs those who have it. Until
// it cannot any more this process stays, goes from epoch to epoch, and asks.
void NodeMachine::ask_to_leave() {
  if (!leaves_at_) leaves_at_ = now_ + config_.node_timeout;
  pause_of_asking_ = pause_min;
  next_beat_ = now_;
}

void NodeMachine::may_not_leave(std::uint32_t rank) {
  if (waits_for_ == rank) return;
  waits_for_ = rank;
  log(log::Level::warning,
      fmt::format(
          "worker {} may still need this process: its folder has not kept the end of the last call. This "
          "process leaves when it has, or has left, and within {:.3g} s (MS_NODE_TIMEOUT)",
          rank, in_seconds(config_.node_timeout)));
}

// --- without a scheduler -----------------------------------------------------------------------------------

bool NodeMachine::needs_scheduler() const { return leave_ || epoch_lost_ || link_lost_; }

void NodeMachine::look_for_scheduler(const std::string& how) {
  drop_connection();
  scheduler_doubted_until_.reset();
  heard_ = now_;
  why_no_scheduler_ = how;
  no_scheduler_since_ = start_ = now_;
  next_progress_ = now_ + warning_interval;
  announcements_ = Announcements(now_);
  if (!is_member()) {  // as if it came for the first time
    log(log::Level::warning, fmt::format("the scheduler at {} is gone: {}", config_.scheduler, how));
    return try_again(how);
  }
  log(log::Level::warning,
      fmt::format("the scheduler at {} is gone: {}; this process goes on. Start the scheduler again with the "
                  "same MS_RECOVERY_PATH",
                  config_.scheduler, how));
  if (needs_scheduler() && !needed_until_)
    needed_until_ = now_ + (leave_ && leave_->status != 0 ? milliseconds(0) : config_.node_timeout);
  look_again();
}

void NodeMachine::look_again() {
  const Duration waited = now_ - no_scheduler_since_;
  phase_ = Phase::waiting;
  phase_deadline_ =
      now_ + (waited < at_first ? std::clamp<Duration>(waited / 4, pause_min, pause_at_first) : pause_later);
  if (now_ < next_progress_) return;
  next_progress_ = now_ + warning_interval;
  log(log::Level::warning,
      fmt::format("the scheduler at {} is gone since {:.3g} s ({}). Start it again with the same "
                  "MS_RECOVERY_PATH",
                  config_.scheduler, in_seconds(waited), why_no_scheduler_));
}

void NodeMachine::found_scheduler() {
  phase_ = Phase::running;
  needed_until_.reset();
  log(log::Level::warning, fmt::format("the scheduler at {} is there again after {:.3g} s", config_.scheduler,
                                       in_seconds(now_ - no_scheduler_since_)));
  for (const message::PeerGone& gone : gone_) send(gone);
  if (link_lost_) send(*link_lost_);
  if (!leave_) return;
  if (leave_->status == 0 && config_.member.role == Role::worker)
    ask_to_leave();
  else
    say_goodbye(node_event::Leave(*leave_));
}

// The time is over in which a worker needed it. False: it is here, and only did not answer that one word.
bool NodeMachine::give_up_scheduler() {
  needed_until_.reset();
  if (is_registered()) return false;
  if (leave_) {
    if (leave_->status == 0)
      log(log::Level::warning, fmt::format("left without the scheduler at {}, which is gone since {:.3g} s",
                                           config_.scheduler, in_seconds(now_ - no_scheduler_since_)));
    left();
    return true;
  }
  fail_without_scheduler(fmt::format("{}, and was not started again for {:.3g} s (MS_NODE_TIMEOUT)",
                                     why_no_scheduler_, in_seconds(config_.node_timeout)));
  return true;
}

}  // namespace muster::cluster
