// This process as a node of the job: a worker or a server.
//
// Threads: a Node owns one thread that talks with the scheduler. Every member may be called from any thread.
// A forked child is not a node: there, every call is an error or does nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/cluster/activity.h"
#include "muster/cluster/membership_report.h"
#include "muster/cluster/parameter_report.h"
#include "muster/cluster/process_stats.h"
#include "muster/cluster/roster.h"
#include "muster/cluster/scheduler_process.h"
#include "muster/cluster/variables.h"
#include "muster/net/net.h"

namespace muster::cluster {

// What a node tells of itself, and what protects its connections. Host key, address and process come from
// `describe_host`; the data plane adds its port and local name before joining.
struct Registration {
  std::string host_key = {};
  std::string address = {};
  std::uint16_t data_port = 0;
  std::string local_name = {};
  std::int32_t pid = 0;
  std::string process_space = {};
  std::string host_name = {};
  std::uint64_t cores_key = 0;
  std::uint64_t incarnation = 0;                       // see Member
  std::vector<std::string> scheduler_ips = {};         // what MS_SCHED_HOST means, to be tried in turn
  std::shared_ptr<const net::Security> security = {};  // null: plain
  Traits traits = {};                                  // what should be equal everywhere; see fingerprint.h
  // What lies below MS_RECOVERY_PATH. Asked on the node's own thread, until the process has its roster.
  std::function<std::vector<FoundJob>()> find_jobs = {};
};

// Reads what protects the job, resolves the scheduler's host name, waiting for it up to
// MUSTER_RESOLVE_TIMEOUT, and finds this host's address and identity. `data_port` and `local_name` are left
// for the caller. Errors name the variable to blame.
Result<Registration> describe_host(const Settings& settings, const Interrupted& interrupted = {});

// As whom a process of the job may be met: by where it is, by its machine's name, or by its node id.
net::Identity identity_of(const Member& member);

class Node {
 public:
  // Registers and blocks until every process of the job has come, or fails with the reason.
  static Result<std::unique_ptr<Node>, Failure> join(const Settings& settings, Registration registration,
                                                     Interrupted interrupted = {});
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Of the current epoch; never null. It changes when an epoch was lost, the rank does not.
  std::shared_ptr<const Roster> roster() const;
  Role role() const;
  std::uint32_t rank() const;

  // The last step that was done, and the calls: atomic stores. They travel with the heartbeat.
  void report_step(std::uint64_t step);
  void report_progress(Progress progress);
  // Whether its steps take longer than they did: heartbeats then come ten times as often.
  void report_slower(bool is_slower);
  // Compared by the scheduler with those of the other workers; it is lost with a connection that breaks.
  void report_parameters(ParameterReport report);

  // What this process is at, and its numbers, but for its memory and processor time, which the node knows:
  // asked for each heartbeat on the node's own thread, and never after the Node is gone.
  void on_beat(std::function<Activity()> activity, std::function<ProcessStats()> stats = {});

  // Called with the stacks of this process each time that they were taken, on another thread: when an
  // observer asks for them, or the job is stuck. Never after the Node is gone.
  void on_stacks(std::function<void(const std::string&)> keep);

  // How this process goes from one epoch of a recovering job to the next. All are called on the node's own
  // thread, one after the other; `lost` may be called again before `formed` when the next epoch is lost too.
  struct EpochHooks {
    // The epoch has ended: where will this process be reached in the next one? An error ends this process.
    std::function<Result<DataEndpoint>(const Failure& reason)> lost;
    std::function<void(std::shared_ptr<const Roster>)> formed;  // the next epoch has begun
    // A worker has left well in the middle of `epoch`: no worker meets it any more. Said again and again.
    std::function<void(std::uint64_t epoch, std::uint32_t rank)> left = {};
    // Asked before each connection to a scheduler: why another process has this one's place, if one has. The
    // scheduler that gave it away may have lost its log since. Nothing to ask may be left out.
    std::function<std::optional<std::string>()> replaced = {};
  };
  // A lost epoch waits until the hooks are there.
  void on_epoch(EpochHooks hooks);
  // The data plane of `epoch` broke here although no process may have died: asks for a new epoch with all.
  void report_link_lost(std::uint64_t epoch, std::string reason);

  // `callback` is called once, on the node's own thread, when the job has failed; at once when it already
  // has.
  void on_failure(std::function<void(const Failure&)> callback);
  std::optional<Failure> failure() const;

  // False while the scheduler is gone, in a job that recovers.
  bool has_scheduler() const;

  // Tells the scheduler that this process ends: done (status 0) or failed, for `reason`. Waits for its
  // answer, at most two seconds; in a job that recovers, who is done waits up to MS_NODE_TIMEOUT for a
  // scheduler that is gone (a server two seconds), and as long for a worker that may still need it.
  // `meanwhile` is then called about every 100 ms, on this thread. Only the first call counts.
  void leave(int exit_status, std::string reason, const std::function<void()>& meanwhile = {});
  // Whether that is over, but for its return.
  bool has_left() const;

  // Another process has this one's place: it ends without a word to the scheduler, as if refused. Instead of
  // `leave`.
  void replaced(std::string reason);

  // Blocks until the job has ended (a server's whole life). Nothing: it ended well.
  std::optional<Failure> wait(Interrupted interrupted = {});

 private:
  class Implementation;
  explicit Node(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace muster::cluster
