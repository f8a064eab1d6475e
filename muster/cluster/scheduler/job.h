// Job: what all phases of a job share, and the way from one to the next. The objects in it know the job and
// each other through it; none is reached from outside this folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/cluster/forming_table.h"
#include "muster/cluster/scheduler.h"
#include "muster/cluster/scheduler/ledger.h"
#include "muster/cluster/scheduler/liveness.h"
#include "muster/cluster/scheduler/observer_desk.h"
#include "muster/cluster/scheduler/parameter_check.h"
#include "muster/cluster/scheduler/peers.h"
#include "muster/cluster/scheduler/phase.h"
#include "muster/cluster/scheduler/seating.h"
#include "muster/cluster/scheduler/slow_report.h"
#include "muster/cluster/scheduler/stuck_report.h"
#include "muster/cluster/seats.h"

namespace muster::cluster {

class Job {
 public:
  Job(SchedulerConfig config_of_job, TimePoint time);

  Phase& phase() { return *phases_.back(); }
  const Phase& phase() const { return *phases_.back(); }
  bool is(JobState state) const { return phase().state() == state; }
  void enter(std::unique_ptr<Phase> phase) { phases_.push_back(std::move(phase)); }
  // The first failure is the job's; what follows from it is not news.
  void fail(Failure failure);
  void end();
  // At the end of a step: what is to be done, and the phases that are over go.
  SchedulerActions take_actions();

  // Actions.
  void send(PeerId id, MessageBody body);
  void share(PeerId id, std::shared_ptr<const Message> message);
  std::shared_ptr<const Message> message_of(MessageBody body) const;
  // The same words, as `Words` (Waiting or Stuck), to every node that is connected, and into the log.
  template <class Words>
  void tell_all(const std::string& text) {
    log(log::Level::warning, text);
    const auto message = message_of(Words{text});
    for (const auto& [id, peer] : peers)
      if (peer.is_connected() && !peer.has_left()) share(id, message);
  }
  void close(PeerId id);
  void refuse(PeerId id, const std::string& reason);
  // The same for a process that wants to register; people see it.
  void turn_down(PeerId id, const Member& member, const std::string& reason);
  void record(Record record);
  // Once it is settled which job it is; nothing is recorded before.
  void record_job();
  void log(log::Level level, std::string text);

  // Processes and epochs.
  Peer& accept(PeerId id, Registrant registrant);
  void greet(PeerId id, Peer& peer);
  // Of all that is kept by the number of its connection, nothing stays.
  void forget(PeerId id);
  void take_roster(std::shared_ptr<const Roster> roster);
  // It is recorded, and all are told.
  void begin_epoch(std::shared_ptr<const Roster> roster);
  void tell_of_epoch(PeerId id, Peer& peer);
  void note_progress(Peer& peer, const Progress& progress);
  std::uint32_t wanted(Role role) const;
  std::string why_ended() const;

  SchedulerConfig config;
  TimePoint now;
  const TimePoint start;
  Ledger ledger;
  Peers peers;
  Seats seats;  // from the first roster on
  Attempts attempts = {};
  std::vector<std::string> differences_told = {};  // see traits_check.h
  std::uint32_t links_lost_in_a_row = 0;           // without a step between them
  Liveness liveness;
  Seating seating;
  StuckReport stuck;
  SlowReport slow{*this};
  ParameterCheck parameters;
  ObserverDesk observers;
  SchedulerActions actions = {};

 private:
  std::vector<std::unique_ptr<Phase>> phases_ = {};  // the last is current, the others end with the step
};

}  // namespace muster::cluster
