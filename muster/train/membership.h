// Membership of this process in the job: who takes part, what becomes of it, and how this process leaves.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "muster/base/base.h"
#include "muster/cluster/cluster.h"
#include "muster/train/worker_groups.h"

namespace muster::train {

// Threads: main, except where a function says otherwise.
class Membership {
 public:
  // `groups` and `node` are borrowed. `strict`: MUSTER_STRICT, workers that differ are an error.
  Membership(WorkerGroups& groups, cluster::Node& node, bool strict);
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  std::uint32_t rank() const { return node_.rank(); }
  std::uint32_t world_size() const { return static_cast<std::uint32_t>(roster().workers.size()); }
  // Among the workers of this host, whether or not they share memory.
  std::uint32_t local_rank() const { return workers_here(rank()); }
  std::uint32_t local_size() const { return workers_here(world_size()); }
  // Of those, the workers that run on the same cores as this one, itself among them.
  std::uint32_t workers_on_its_cores() const;
  // Of the epoch in use.
  const cluster::Roster& roster() const { return groups_.roster(); }
  std::uint64_t epoch() const { return roster().epoch; }
  bool is_strict() const { return strict_; }
  // Whether lost processes may come back (MS_ENABLE_RECOVERY).
  bool recovers() const { return roster().recovers; }
  // A forked child inherits this object but is no worker: it may not speak for its parent.
  bool in_forked_child() const;

  // The last step that was done; others are told it should this process die. Any thread.
  void report_step(std::uint64_t step);
  // To be compared with those of the other workers. Any thread.
  void report_parameters(cluster::ParameterReport report) { node_.report_parameters(std::move(report)); }
  std::uint64_t highest_step() const { return highest_step_.load(std::memory_order_relaxed); }

  // Why the job has failed, once it has. Any thread.
  std::optional<cluster::Failure> failure() const { return node_.failure(); }
  // The reason behind `error` of a call with other workers: when a peer died, the cluster's verdict (who,
  // how, at which step), waited for briefly, is worth more than a broken connection.
  Error verdict(Error error) const;
  // To be called now and then while the main thread waits for other workers: Ctrl-C ends the group, and so
  // the wait; its error is then that of the interruption.
  void look_for_interruption_of_wait();

  // Why this process is about to fail, e.g. an uncaught exception; the scheduler is told as it leaves.
  void note_reason(std::string reason) { reason_ = std::move(reason); }
  struct Leaving {
    int exit_status = 0;
    // The folder of its points has a newer owner: it is not this worker that is done.
    std::optional<std::string> replaced = {};
    std::function<void()> serve = {};  // called while others may still need this worker
  };
  // Tells the scheduler that this process ends. Bounded.
  void leave(const Leaving& leaving);

 private:
  // Of the first `count` workers, those of this host.
  std::uint32_t workers_here(std::uint32_t count) const;

  WorkerGroups& groups_;
  cluster::Node& node_;
  const bool strict_;
  const std::uint32_t fork_count_;
  std::atomic<std::uint64_t> highest_step_{0};
  std::string reason_;
  std::atomic<bool> was_interrupted_{false};
  Error interruption_;  // written once, before that is true
};

}  // namespace muster::train
