// Session: this process's part in an open job. It owns what the process has of the job, and gives access to
// its three parts: who takes part, calls with the others, and recovery. Functions take the part that they
// need.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "muster/cluster/cluster.h"
#include "muster/telemetry/telemetry.h"
#include "muster/train/collectives.h"
#include "muster/train/membership.h"
#include "muster/train/session_recovery.h"
#include "muster/train/watch.h"
#include "muster/train/worker_groups.h"

namespace muster::train {

class Session {
 public:
  // The open session, or null. Any thread. Never destroyed: threads and exit handlers may look at it until
  // the very end of the process.
  static Session* current();
  // The whole life of a server; a worker's until it has a session. Nothing: all went well.
  static std::optional<cluster::Failure> open(const cluster::Settings& settings,
                                              const cluster::Interrupted& interrupted);

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  Membership& membership() { return membership_; }
  Collectives& collectives() { return collectives_; }
  SessionRecovery& recovery() { return recovery_; }
  WorkerGroups& worker_groups() { return *groups_; }

  // Tells the scheduler that this process ends. Bounded; only the first call counts.
  void leave(int exit_status);

 private:
  Session(const cluster::Settings& settings, std::unique_ptr<cluster::Node> node,
          std::unique_ptr<WorkerGroups> groups, std::unique_ptr<Watch> watch);
  void follow_cluster();
  std::optional<cluster::Failure> connect();

  std::unique_ptr<Watch> watch_;
  std::unique_ptr<WorkerGroups> groups_;
  std::unique_ptr<cluster::Node> node_;
  Membership membership_;
  Collectives collectives_;
  SessionRecovery recovery_;
  std::shared_ptr<telemetry::FlightRecorder> recorder_;  // null: none
};

}  // namespace muster::train
