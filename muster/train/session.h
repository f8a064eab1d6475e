// This process's part in the job: opened by init(), closed when the process ends.
//
// How a process leaves: `done` when it exits with status 0, `failed` with any other status, `dead` when it
// ends without a word. init() registers an exit handler that tells the scheduler which; note_reason() says
// why beforehand. When the job fails, the next Muster call returns the reason, and a process that has not
// ended one second later is ended with the failure's exit code, its streams flushed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "muster/base/base.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/cluster/cluster.h"
#include "muster/collective/collective.h"
#include "muster/tensor/tensor.h"
#include "muster/train/epochs.h"
#include "muster/train/watch.h"

namespace muster::train {

using cluster::Failure;
using cluster::Role;

struct InitOptions {
  cluster::Interrupted interrupted;  // asked about every 100 ms while init() blocks; true ends it
};

// Forms the cluster that `environment` describes, and waits for all of it. In a worker it returns when the
// job can start. In the scheduler and in servers it returns when the job has ended well. A second call
// returns the role at once. In a process that `muster explain` has started, it forms no cluster: the process
// is a worker alone.
Result<Role, Failure> init(const Environment& environment = real_environment(),
                           const InitOptions& options = {});

class Session {
 public:
  // The open session, or null. Any thread.
  static Session* current();

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  std::uint32_t rank() const { return node_->rank(); }
  std::uint32_t world_size() const { return static_cast<std::uint32_t>(roster().workers.size()); }
  // Among the workers of this host, whether or not they share memory.
  std::uint32_t local_rank() const { return workers_here(rank()); }
  std::uint32_t local_size() const { return workers_here(world_size()); }
  // Of the epoch in use.
  const cluster::Roster& roster() const { return epochs_->roster(); }
  std::uint64_t epoch() const { return roster().epoch; }

  // All workers, in the epoch in use; connected at the latest by the first call, to which all workers come.
  Result<Communicator*> communicator() { return epochs_->communicator(); }
  // The workers that do the same stage of each copy of a placed network, numbered by their copies. The first
  // call in an epoch, and the first for another number of stages, is a collective one of all workers.
  Result<Communicator*> stage_group(std::uint32_t stages) { return epochs_->stage_group(stages); }

  // One collective call of all workers, or of those of a stage group; its error says what verdict() does.
  using GroupCall = std::function<Result<>(Communicator&)>;
  Result<> call_all(const GroupCall& call) { return explained(communicator(), call); }
  Result<> call_stage_group(std::uint32_t stages, const GroupCall& call) {
    return explained(stage_group(stages), call);
  }

  // Whether other workers are on this host, and this process may share memory with them.
  bool shares_memory() const { return epochs_->has_neighbours() && !in_forked_child(); }
  // The same of a stage group; false until it is formed.
  bool stage_shares_memory(std::uint32_t stages) const;
  // Memory that makes reductions of it cheaper in this epoch, over all workers or those of a stage group.
  Result<std::shared_ptr<std::byte>> shared_buffer(std::size_t size_bytes,
                                                   std::optional<std::uint32_t> stages);

  // MUSTER_STRICT: workers that differ are an error.
  bool is_strict() const { return strict_; }
  // Whether lost processes may come back (MS_ENABLE_RECOVERY).
  bool recovers() const { return roster().recovers; }
  // Whether the call that failed with `error` may be made again in the next epoch: a process was lost, or the
  // way to it. Waits for the cluster's word on it, and asks for a new epoch when nobody died.
  bool lost_epoch(const Error& error);
  // Blocks until the next epoch has formed; what it waits for is logged. The job's failure, or Ctrl-C, is the
  // error. Main thread.
  Result<> next_epoch();
  // This worker has finished so many calls of train, eval and the like, each with its state on disk.
  void report_finished_calls(std::uint64_t calls);
  // Of so many calls its own folder has the ends.
  void report_kept_calls(std::uint64_t calls);
  // As many as any worker had when the epoch in use formed: those that need not, and cannot, be made again.
  std::uint64_t finished_calls() const { return roster().finished_calls; }
  // A collective call that `what` names for people. Outside of numbered calls (train, eval, recoverable:
  // where is_in_call() holds) it is numbered itself: it is made again in the next epoch when this one is lost
  // in it, and is an error where the other workers have passed it already, since they cannot answer any more.
  Result<> explicit_collective(std::string_view what, std::optional<std::uint32_t> stages,
                               const GroupCall& call);
  // All workers of the epoch in use have met: none is behind, and lacks what another one has.
  void note_rendezvous() { met_in_epoch_ = epoch(); }
  bool is_in_call() const { return is_in_call_; }
  void set_in_call(bool is_in_call) { is_in_call_ = is_in_call; }

  // Where this worker keeps its recovery points, in MS_RECOVERY_PATH. Opened by the first call.
  Result<checkpoint::RunStore*> run_store();
  // For whoever starts this process again.
  void mark_step(const checkpoint::StepPlace& place);

  // The last step that was done; others are told it should this process die. Any thread.
  void report_step(std::uint64_t step);
  // Why the job has failed, once it has. Any thread.
  std::optional<Failure> failure() const { return node_->failure(); }
  // The reason behind `error` of a call with other workers: when a peer died, the cluster's verdict (who,
  // how, at which step), waited for briefly, is worth more than a broken connection.
  Error verdict(Error error) const;
  // To be called now and then while the main thread waits for other workers: Ctrl-C ends the group, and so
  // the wait; its error is then that of the interruption.
  void look_for_interruption_of_wait();
  // A forked child inherits this object but is no worker: it may not speak for its parent.
  bool in_forked_child() const;
  // Why this process is about to fail, e.g. an uncaught exception; the exit handler passes it on.
  void note_reason(std::string reason);
  // Tells the scheduler that this process ends. Bounded; only the first call counts.
  void leave(int exit_status);

 private:
  friend Result<Role, Failure> init(const Environment&, const InitOptions&);
  // The whole life of a server; a worker's until it has a session. Nothing: all went well.
  static std::optional<Failure> join(const cluster::Settings& settings, const InitOptions& options);
  Session(std::unique_ptr<Watch> watch, std::unique_ptr<cluster::Node> node, std::unique_ptr<Epochs> epochs,
          std::string recovery_path);

  Result<> meet();
  void serve_before_leaving();
  // Whether the disk has taken the first point since this was asked last.
  bool has_first_point();
  Result<> explained(Result<Communicator*> group, const GroupCall& call) const;
  // Of the first `count` workers, those of this host.
  std::uint32_t workers_here(std::uint32_t count) const;

  std::unique_ptr<Watch> watch_;
  std::unique_ptr<Epochs> epochs_;
  std::unique_ptr<cluster::Node> node_;  // calls the others, so it goes first
  std::string recovery_path_;
  std::optional<checkpoint::RunStore> run_store_;
  std::unique_ptr<checkpoint::StepMark> step_mark_;
  cluster::Progress progress_;
  std::atomic<std::uint64_t> highest_step_{0};
  std::atomic<int> links_lost_{0};  // since then, without a death
  bool is_in_call_ = false;
  std::uint64_t met_in_epoch_ = 0;
  std::uint64_t served_in_epoch_ = 0;
  bool strict_ = false;
  bool fresh_ = false;
  std::string reason_;
  std::int32_t pid_;
  std::atomic<bool> was_interrupted_{false};
  Error interruption_;  // written once, before that is true
};

// The rank of this worker, the number of workers, and the same among the workers of this host. An error
// before init().
Result<std::uint32_t> get_rank();
Result<std::uint32_t> get_group_size();
Result<std::uint32_t> get_local_rank();
Result<std::uint32_t> get_local_rank_size();

// The seed of everything random: what set_seed() chose, else the job's, else one drawn for this process.
std::uint64_t seed();
void set_seed(std::uint64_t seed);

// Threads for kernels: OMP_NUM_THREADS where the user chose, else the allowed cores shared by this host's
// workers.
int threads();

}  // namespace muster::train
