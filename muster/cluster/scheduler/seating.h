// Seating, in a job that recovers: processes register once and again, and those that come new wait for a seat
// until it is known whether the process that holds it lives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/cluster/scheduler/lost_log.h"
#include "muster/cluster/scheduler/phase.h"
#include "muster/cluster/seats.h"

namespace muster::cluster {

class Seating {
 public:
  explicit Seating(Job& job) : job_(job) {}

  void register_node(PeerId id, const Message& message, const message::Register& request);
  // After each event: newcomers take seats.
  void settle();
  TimePoint deadline() const;
  void forgive();
  void closed(PeerId id);
  // A process is given up: its seat, if it has one, is vacant.
  void lose(PeerId id, const std::string& how);
  // A process that was accepted before is heard while it waits again.
  bool hears(PeerId id, const Message& message);

  // Why a process that says that it is this one is not believed.
  std::optional<std::string> impersonation(const Member& member, const ProcessKey& key) const;
  // What phases decide of a newcomer: it takes a seat of the roster,
  Verdict place(const Newcomer& newcomer);
  // or that of a process which it has to outlive,
  Verdict contest(PeerId stale_id, const Newcomer& newcomer);
  // or none, now or when no one is doubted any more who could leave one.
  Verdict turn_away(const Newcomer& newcomer, const std::string& reason);
  Verdict turn_away_once_sure(const Newcomer& newcomer, const std::string& reason);

 private:
  std::optional<std::string> unfit(const Message& message) const;
  bool adopts_job(PeerId id, const Message& message, const message::Register& request);
  void add_those_who_formed(const std::vector<PeerId>& registered);
  void add(const Newcomer& newcomer);
  void come_back(PeerId before, PeerId id, const Message& message, const message::Register& request);
  void take_own_seat(const Newcomer& self, const Message& message, const message::Register& request);
  Peer& sit(const Newcomer& newcomer, Seat& seat, bool is_ready);
  Duration contest_time() const;

  Job& job_;
  std::vector<Newcomer> newcomers_ = {};
  std::optional<LostLog> lost_log_ = {};  // while its members say what was in it
};

}  // namespace muster::cluster
