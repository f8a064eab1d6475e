// Forming: processes register until all are there, each gets its rank, and the first epoch begins.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/cluster/forming_table.h"
#include "muster/cluster/scheduler/found_jobs.h"
#include "muster/cluster/scheduler/phase.h"

namespace muster::cluster {

class Forming : public Phase {
 public:
  explicit Forming(Job& job);

  JobState state() const override { return JobState::forming; }
  // "2 of 4 workers came, 2 missing", and a line for each problem.
  std::string text() const override;
  TimePoint deadline() const override;
  void check() override;
  void forgive(Duration pause) override { found_.forgive(pause); }
  const Member* holder(const Member& member) const override;
  std::string duplicate_id(const Member& holder) const override;
  std::optional<std::string> admit(PeerId id, Registrant registrant) override;
  Verdict place(const Newcomer& newcomer) override;
  void came_back(PeerId before, PeerId id, Peer& peer, const Message& message) override;
  void done(PeerId id, const Peer& peer) override;
  void died(PeerId id, Peer& peer, const std::string& how) override;
  void forgotten(PeerId id, const Peer& peer) override;
  bool shows_rejection(bool) override { return true; }
  std::string missing() const override;

  std::vector<PeerId> registered() const override { return order_; }

 private:
  bool has_room(Role role) const;
  void form_if_complete();
  bool is_complete() const;
  std::vector<Member> rank_members(Role role);
  FormingView view() const;

  Announcements announcements_;
  FoundJobs found_;
  std::vector<PeerId> order_ = {};  // of registration
  std::map<std::pair<Role, std::string>, PeerId> by_name_ = {};
  std::map<Role, std::uint32_t> present_ = {};
};

}  // namespace muster::cluster
