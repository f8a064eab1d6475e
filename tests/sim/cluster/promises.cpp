#include "promises.h"

#include <fmt/format.h>

#include <set>

namespace muster::cluster::sim {
namespace {

class Promises {
 public:
  template <class... Arguments>
  void expect(bool holds, fmt::format_string<Arguments...> otherwise, Arguments&&... arguments) {
    if (!holds) broken_.push_back(fmt::format(otherwise, std::forward<Arguments>(arguments)...));
  }
  std::vector<std::string> take() { return std::move(broken_); }

 private:
  std::vector<std::string> broken_;
};

// Who is named by a digit asked for that rank.
void expect_asked_ranks(Promises& promises, const Plan& plan, const Roster& roster) {
  for (const Member& member : roster.workers) {
    if (member.node_id.size() > 1 || member.node_id < "0" || member.node_id > "9") continue;
    const auto asked = static_cast<std::uint32_t>(member.node_id[0] - '0');
    promises.expect(asked >= plan.worker_num || member.rank == asked, "node '{}' has rank {}", member.node_id,
                    member.rank);
  }
}

void expect_agreement(Promises& promises, const Plan& plan, const RunResult& result) {
  std::shared_ptr<const Roster> roster;
  std::set<std::pair<Role, std::uint32_t>> ranks;
  for (std::size_t i = 0; i < result.nodes.size(); ++i) {
    const NodeResult& node = result.nodes[i];
    if (!node.roster) continue;
    if (!roster) roster = node.roster;
    promises.expect(roster == node.roster || *roster == *node.roster, "node {} has another roster", i);
    promises.expect(ranks.insert({plan.nodes[i].role, node.rank}).second, "rank {} was given twice",
                    node.rank);
    const auto& members = plan.nodes[i].role == Role::worker ? node.roster->workers : node.roster->servers;
    promises.expect(node.rank < members.size() && members[node.rank].node_id == plan.nodes[i].node_id &&
                        members[node.rank].rank == node.rank,
                    "node {} does not stand at its rank {}", i, node.rank);
  }
  if (!roster) return;
  promises.expect(roster->workers.size() == plan.worker_num && roster->servers.size() == plan.server_num,
                  "a roster of {} workers and {} servers", roster->workers.size(), roster->servers.size());
  expect_asked_ranks(promises, plan, *roster);
}

void expect_everyone_ends(Promises& promises, const Plan& plan, const RunResult& result) {
  promises.expect(result.settled, "something ticks for ever");
  promises.expect(result.scheduler_ended || result.scheduler_crashed, "the scheduler hangs");
  for (std::size_t i = 0; i < result.nodes.size(); ++i) {
    const NodeResult& node = result.nodes[i];
    promises.expect(node.process_ended || node.crashed || node.stopped, "node {} '{}' hangs", i,
                    plan.nodes[i].node_id);
  }
}

void expect_true_outcome(Promises& promises, const Plan& plan, const RunResult& result) {
  if (result.scheduler_ended && !result.scheduler_failure) {
    for (std::size_t i = 0; i < result.nodes.size(); ++i) {
      const NodeResult& node = result.nodes[i];
      if (plan.nodes[i].role != Role::worker) continue;  // a server may die unseen while the job ends
      promises.expect(!(node.crashed && node.roster), "the death of node {} was not reported", i);
      promises.expect(!(node.stopped && node.roster), "node {} was stopped, which was not reported", i);
    }
  }
  // Who was part of the job and did not leave done before its failure says that it failed.
  const bool job_failed = result.scheduler_crashed || result.scheduler_failure;
  for (std::size_t i = 0; i < result.nodes.size(); ++i) {
    const NodeResult& node = result.nodes[i];
    if (!job_failed || !node.roster || node.crashed || node.stopped || node.left_done) continue;
    if (result.scheduler_crashed && node.job_ended) continue;  // it was told before
    promises.expect(node.failure || node.fault != TimePoint{}, "node {} does not know that its job failed",
                    i);
  }
}

}  // namespace

std::vector<std::string> broken_promises(const Plan& plan, const RunResult& result) {
  Promises promises;
  expect_agreement(promises, plan, result);
  expect_everyone_ends(promises, plan, result);
  expect_true_outcome(promises, plan, result);
  return promises.take();
}

std::vector<std::string> broken_promises(const RecoveryResult& result) {
  Promises promises;
  for (const std::string& what : result.broken) promises.expect(false, "{}", what);
  promises.expect(result.settled, "something ticks for ever");
  promises.expect(result.ended_well || result.failure, "the scheduler hangs");
  for (const ProcessResult& process : result.processes)
    promises.expect(process.ended || process.killed, "process {} hangs", process.incarnation);
  if (!result.ended_well || !result.last) return promises.take();
  // The members of the last epoch that a scheduler knew were done, nobody else was believed to be; and what
  // they ended with is in their folders. (Of a later one that died with the log nothing was left to know.)
  for (const Member& member : result.last->workers) {
    const ProcessResult& process = result.processes[member.incarnation - 1];
    promises.expect(process.left_done, "rank {} was not done", member.rank);
    promises.expect(process.kept_end, "the end of rank {} is kept nowhere", member.rank);
  }
  return promises.take();
}

}  // namespace muster::cluster::sim
