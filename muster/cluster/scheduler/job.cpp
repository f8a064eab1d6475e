#include "muster/cluster/scheduler/job.h"

#include <fmt/format.h>

#include <utility>

#include "muster/cluster/scheduler/forming.h"
#include "muster/cluster/scheduler/running.h"
#include "muster/cluster/scheduler/telling.h"

namespace muster::cluster {

Job::Job(SchedulerConfig config_of_job, TimePoint time)
    : config(std::move(config_of_job)),
      now(time),
      start(time),
      ledger{
          .job_id = config.job_id, .seed = config.seed, .epoch = config.epoch, .is_recorded = !config.fresh},
      liveness(*this),
      seating(*this),
      stuck(*this),
      parameters(*this),
      observers(*this) {
  enter(std::make_unique<Forming>(*this));
}

void Job::fail(Failure failure) {
  if (is(JobState::ended)) return;
  failure.message += phase().missing();
  ledger.failure = std::move(failure);
  end();
}

void Job::end() { enter(std::make_unique<Telling>(*this)); }

SchedulerActions Job::take_actions() {
  phases_.erase(phases_.begin(), phases_.end() - 1);
  return std::exchange(actions, {});
}

// --- actions -----------------------------------------------------------------------------------------------

void Job::send(PeerId id, MessageBody body) {
  actions.push_back(scheduler_action::Send{id, {ledger.job_id, ledger.epoch, std::move(body)}});
}

void Job::share(PeerId id, std::shared_ptr<const Message> message) {
  actions.push_back(scheduler_action::Share{id, std::move(message)});
}

std::shared_ptr<const Message> Job::message_of(MessageBody body) const {
  return std::make_shared<const Message>(Message{ledger.job_id, ledger.epoch, std::move(body)});
}

// No Closed follows for a connection that is closed from here.
void Job::close(PeerId id) {
  actions.push_back(scheduler_action::Close{id});
  observers.forget(id);
}

void Job::refuse(PeerId id, const std::string& reason) {
  send(id,
       message::Refuse{{Code::refused, "the scheduler refused this process: " + reason, exit_code_refused}});
  close(id);
}

void Job::turn_down(PeerId id, const Member& member, const std::string& reason) {
  const bool is_news = attempts.refused(member, reason, now);
  if (is_news)
    log(log::Level::warning, fmt::format("refused {} '{}' from {}: {}", to_string(member.role),
                                         member.node_id, member.address, reason));
  phase().shows_rejection(is_news);  // to those who wait for it, too
  refuse(id, reason);
}

void Job::record(Record record) {
  if (ledger.is_recorded) actions.push_back(scheduler_action::Record{std::move(record)});
}

void Job::record_job() {
  if (std::exchange(ledger.is_recorded, true)) return;
  record(record::Job{.job_id = ledger.job_id,
                     .seed = ledger.seed,
                     .worker_num = config.worker_num,
                     .server_num = config.server_num,
                     .ended_job_id = config.ended_job_id});
  if (!config.address.empty()) record(record::At{config.address});
  if (ledger.epoch_min > 0) record(record::Adopted{ledger.epoch_min});
  if (ledger.has_points) record(record::Kept{});
}

void Job::log(log::Level level, std::string text) {
  actions.push_back(scheduler_action::Log{level, std::move(text)});
}

// --- processes and epochs ----------------------------------------------------------------------------------

Peer& Job::accept(PeerId id, Registrant registrant) {
  Peer& peer = peers.add(id, std::move(registrant));
  greet(id, peer);
  peer.epoch_accepted = peer.epoch_member = ledger.epoch;
  liveness.watch(id, peer);
  log(log::Level::debug, fmt::format("{} registered", describe(peer)));
  return peer;
}

void Job::greet(PeerId id, Peer& peer) {
  peer.heard = peer.spoke = now;
  send(id, message::Accept{beat_interval_for(config.node_timeout), config.pid, config.process_space});
}

void Job::forget(PeerId id) {
  const Peer peer = peers.remove(id);
  if (Seat* seat = seats.find_peer(id)) {
    seat->peer = 0;
    if (peer.said.progress)
      seat->kept_calls = peer.said.progress->kept_calls;
    else if (peer.connection != PeerConnection::awaited && !seat->kept_calls)
      seat->kept_calls = 0;
  }
  phase().forgotten(id, peer);
  if (peer.is_connected()) close(id);
}

void Job::take_roster(std::shared_ptr<const Roster> roster) {
  ledger.roster = std::move(roster);
  ledger.epoch = ledger.roster->epoch;
  ledger.left_in_epoch.reset();
  ledger.roster_ready = message_of(message::RosterReady{ledger.roster});
}

void Job::begin_epoch(std::shared_ptr<const Roster> roster) {
  take_roster(std::move(roster));
  enter(std::make_unique<Running>(*this));
  if (config.recovers) {
    record_job();
    record(record::Formed{ledger.roster, seats.keys()});
  }
  for (auto& [id, peer] : peers) {
    if (peer.state == PeerState::ready) peer.state = PeerState::present;
    peer.epoch_told = now;
    peer.said.mark = {};
    if (!peer.has_left()) share(id, ledger.roster_ready);
  }
}

void Job::tell_of_epoch(PeerId id, Peer& peer) {
  peer.epoch_told = now;
  phase().tell_epoch(id);
}

void Job::note_progress(Peer& peer, const Progress& progress) {
  peer.said.progress = progress;
  if (progress.has_point && !std::exchange(ledger.has_points, true) && config.recovers)
    record(record::Kept{});
  if (progress.calls <= ledger.finished_calls) return;
  ledger.finished_calls = progress.calls;
  if (config.recovers) record(record::Finished{ledger.finished_calls});
}

std::uint32_t Job::wanted(Role role) const {
  return role == Role::worker ? config.worker_num : config.server_num;
}

std::string Job::why_ended() const {
  return ledger.failure ? fmt::format("the job has ended: {}", ledger.failure->message) : "the job has ended";
}

}  // namespace muster::cluster
