// Found jobs: unfinished jobs whose recovery points the workers have found, where the scheduler has no log of
// them. One is gone on with, or given up where people said so; a silent new begin is an error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/cluster/messages.h"

namespace muster::cluster {

class Job;
struct Peer;

// Of the workers that form a job.
class FoundJobs {
 public:
  explicit FoundJobs(Job& job) : job_(job) {}

  // Whether processes of a found job that live are waited for.
  bool waits() const { return members_due_.has_value(); }
  void forgive(Duration pause);
  // Before the first epoch, `order` are all of its processes. Nothing begins anew where points of an
  // unfinished job are, unless all were told so. False: that is waited for, or the job has failed.
  bool settle(const std::vector<PeerId>& order);

 private:
  std::vector<const Peer*> finders(const std::vector<PeerId>& order) const;
  bool waits_for_members(const FoundJob& found, const std::vector<const Peer*>& finders);
  bool give_up(const std::vector<PeerId>& order, const std::vector<const Peer*>& finders);
  void adopt(const FoundJob& found, const std::vector<const Peer*>& finders);
  std::string who_found_what(const std::vector<const Peer*>& finders) const;

  Job& job_;
  std::optional<TimePoint> members_due_ = {};  // of a found job that is in use
};

// A free place for a process among those that its points are of.
bool takes_rank_of_its_points(const Job& job, PeerId id, std::vector<std::optional<PeerId>>& places);

// A process that comes new to a job that is known, with points of other jobs only: neither may they be
// cleared away, nor does it belong here. Where no other process is there, that is an error for all.
bool refuses_foreign_points(Job& job, PeerId id, const Member& member, const MembershipReport& memory);
// What the job has kept must be there: in a process that lived on, or in a folder. False: it has failed.
bool a_process_holds_the_job(Job& job);

}  // namespace muster::cluster
