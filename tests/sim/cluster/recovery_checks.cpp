// What must hold of each roster, record and word, while a recovering job is simulated.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "recovery_simulator.h"

namespace muster::cluster::sim {

void RecoverySimulator::check_roster(std::size_t index, const std::shared_ptr<const Roster>& roster) {
  const auto broken = [&](const std::string& what) {
    result_.broken.push_back(fmt::format("epoch {}: {}", roster->epoch, what));
  };
  if (given_up_.contains(roster->job_id)) return;  // it was under way to one who was stopped since
  // Who is started behind the end of a job begins another one, with epochs of its own; and so do all where
  // the log is lost before anything was kept.
  if (!result_.rosters.empty() && result_.rosters.begin()->second->job_id != roster->job_id) {
    const std::uint64_t before = result_.rosters.begin()->second->job_id;
    const bool was_found = std::ranges::any_of(roster->workers, [&](const Member& member) {
      const FoundJob* found = processes_[member.incarnation - 1]->memory.find(before);
      return found != nullptr && !found->is_done;
    });
    if (!result_.ended_well && (was_found || !has_lost_log_)) broken("of a second job");
    result_.rosters.clear();
  }
  result_.jobs.insert(roster->job_id);
  const auto [known, is_new] = result_.rosters.try_emplace(roster->epoch, roster);
  if (!is_new && known->second != roster && !(*known->second == *roster)) broken("two rosters");
  if (!result_.processes[index].epochs.empty() &&
      result_.processes[index].epochs.back().first >= roster->epoch)
    broken("a process went back to it");
  if (is_new) check_ranks(*roster);
  if (!members(roster).contains(index + 1)) broken("it was told to a process that is not in it");
  for (const Member& member : roster->workers) {
    // Where it is reached must be where it listens now.
    if (member.incarnation == index + 1 && member.data_port != processes_[index]->member.data_port)
      broken(fmt::format("it names port {} for a process at {}", member.data_port,
                         processes_[index]->member.data_port));
  }
}

// What a scheduler believes of an epoch is what its processes were told.
void RecoverySimulator::check_record(const Record& record) {
  if (const auto* left = std::get_if<record::Left>(&record)) check_left(*left);
  const auto* formed = std::get_if<record::Formed>(&record);
  if (formed == nullptr) return;
  left_.clear();
  const std::shared_ptr<const Roster> before = std::exchange(result_.last, formed->roster);
  if (before && before->job_id != formed->roster->job_id) given_up_.insert(before->job_id);
  given_up_.erase(formed->roster->job_id);
  const auto known = result_.rosters.find(formed->roster->epoch);
  if (known == result_.rosters.end() || known->second->job_id != formed->roster->job_id) return;
  if (!(*known->second == *formed->roster))
    result_.broken.push_back(fmt::format("epoch {}: recorded with another roster", formed->roster->epoch));
}

// Who has the end of the last call is there until those have left who lack it: one of them may die. Of what a
// scheduler knows that has lost nothing.
void RecoverySimulator::check_left(const record::Left& left) {
  left_.insert(left.rank);
  if (!plan_.makes_call || scheduler_life_ != 1 || left.role != Role::worker || !result_.last) return;
  const auto process_at = [&](const Member& member) -> const Process& {
    return *processes_[member.incarnation - 1];
  };
  const Process& leaver = process_at(result_.last->workers[left.rank]);
  if (!leaver.has_made_call || plan_.full_disks.contains(leaver.node)) return;
  if (now_ - leaver.left >= plan_.node_timeout - 500ms) return;  // it has waited for long enough
  for (const Member& member : result_.last->workers) {
    const Process& other = process_at(member);
    const bool lacks_end = other.alive && other.has_made_call && plan_.full_disks.contains(other.node);
    if (lacks_end && other.left < leaver.left && !member.has_left && !left_.contains(member.rank) &&
        !result_.processes[member.incarnation - 1].failure)
      result_.broken.push_back(
          fmt::format("epoch {}: rank {} has left before rank {}, which lacks the end of the last call",
                      result_.last->epoch, left.rank, member.rank));
  }
}

void RecoverySimulator::check_ranks(const Roster& roster) {
  std::set<std::uint64_t> incarnations;
  for (std::uint32_t rank = 0; rank < roster.workers.size(); ++rank) {
    const Member& member = roster.workers[rank];
    if (!incarnations.insert(member.incarnation).second)
      result_.broken.push_back(fmt::format("epoch {}: one process with two ranks", roster.epoch));
    const std::size_t node = result_.processes[member.incarnation - 1].node;
    if (plan_.are_named && node != rank)
      result_.broken.push_back(fmt::format("epoch {}: a rank went to another node", roster.epoch));
  }
}

const std::set<std::uint64_t>& RecoverySimulator::members(const std::shared_ptr<const Roster>& roster) {
  if (members_of_ == roster) return members_;
  members_of_ = roster;
  members_.clear();
  for (const Member& member : roster->workers) members_.insert(member.incarnation);
  return members_;
}

// Whose place was taken hears nothing but that.
void RecoverySimulator::expect_may_hear(std::size_t index, const Message& message) {
  if (!disk_ || !disk_->roster || std::holds_alternative<message::Refuse>(message.body)) return;
  const bool is_newer = message.epoch >= disk_->roster->epoch;
  const bool is_roster = std::holds_alternative<message::RosterReady>(message.body);
  if (is_newer && is_roster && !members(disk_->roster).contains(index + 1))
    result_.broken.push_back(fmt::format("process {} hears a roster without it", index));
}

}  // namespace muster::cluster::sim
