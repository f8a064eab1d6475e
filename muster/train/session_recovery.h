// Recovery of this worker in the open job: what its calls need of the cluster, the other workers and its
// disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/cluster/cluster.h"
#include "muster/train/collectives.h"
#include "muster/train/membership.h"
#include "muster/train/recovery.h"
#include "muster/train/worker_groups.h"

namespace muster::train {

// Threads: main, except where a function says otherwise.
class SessionRecovery final : public Recovery {
 public:
  struct Options {
    const Clock& clock;  // borrowed
    std::string path;    // MS_RECOVERY_PATH
    bool fresh = false;
  };
  // All but the options is borrowed.
  SessionRecovery(Membership& membership, Collectives& collectives, WorkerGroups& groups, cluster::Node& node,
                  Options options);

  // Where this worker keeps its recovery points. Opened by the first call.
  Result<checkpoint::RunStore*> store() override;
  const Clock& clock() const override { return options_.clock; }
  std::uint32_t local_size() const override { return membership_.local_size(); }
  std::uint32_t rank() const override { return membership_.rank(); }
  std::uint32_t size() const override { return membership_.world_size(); }
  Result<std::vector<Words>> gather(const Words& mine) override;
  Result<> send(std::uint32_t to, Pieces pieces) override;
  Result<> receive(std::uint32_t from, WritablePieces pieces) override;
  // Waits for the cluster's word on the loss, and asks for a new epoch when no process died.
  bool lost_epoch(const Error& error) override;
  // Blocks until the next epoch has formed; what it waits for is logged. The job's failure, or Ctrl-C, is the
  // error.
  Result<> next_epoch() override;
  std::uint64_t finished_calls() const override { return membership_.roster().finished_calls; }
  void report_finished_calls(std::uint64_t calls) override;
  void report_kept_calls(std::uint64_t calls) override;
  void note_rendezvous() override { met_in_epoch_ = membership_.epoch(); }
  void mark_step(const checkpoint::StepPlace& place) override;

  // A collective call that `what` names for people. Outside of numbered calls (train, eval, recoverable) it
  // is numbered itself: it is made again in the next epoch when this one is lost in it, and is an error where
  // the other workers have passed it already, since they cannot answer any more.
  Result<> explicit_collective(std::string_view what, std::optional<std::uint32_t> stages,
                               const Collectives::GroupCall& call);

  // While another worker may still need this one: a worker that comes back is given what it lacks. Once in
  // an epoch; what goes wrong in it costs this worker nothing.
  void serve_before_leaving();
  // The script has ended well: what its folder holds is the end.
  void set_done();
  // That another process has taken the folder of its points. Any thread.
  std::optional<std::string> lost_folder() const;

 private:
  Result<> open_store();
  Result<> meet();
  Result<> look_whether_left() const;
  void end_waits_if_left();
  // Whether the disk has taken the first point since this was asked last.
  bool has_first_point();

  Membership& membership_;
  Collectives& collectives_;
  WorkerGroups& groups_;
  cluster::Node& node_;
  const Options options_;
  std::optional<checkpoint::RunStore> store_;
  std::atomic<const checkpoint::RunStore*> open_store_{nullptr};  // the same, for other threads
  std::unique_ptr<checkpoint::StepMark> step_mark_;
  cluster::Progress progress_;
  int links_lost_ = 0;  // without a death, at this step:
  std::uint64_t links_lost_at_ = 0;
  std::uint64_t met_in_epoch_ = 0;
  std::uint64_t served_in_epoch_ = 0;
};

}  // namespace muster::train
