// Ends this process when the job has failed and the main thread does not.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "muster/cluster/cluster.h"
#include "muster/train/worker_groups.h"

namespace muster::train {

// Threads: any.
class Watch {
 public:
  Watch() = default;
  ~Watch() { stand_down(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Whose waits end when the job fails; borrowed until the end of the process.
  void attach(WorkerGroups& groups);

  // The job has failed: everything that waits ends, and the main thread has a second to end the process.
  void job_failed(const cluster::Failure& failure);
  // Nothing when the job has not failed within `limit`.
  std::optional<cluster::Failure> wait_for_failure(Duration limit);
  // The process is ending by itself.
  void stand_down();

 private:
  void end_process_unless_leaving();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool leaving_ = false;
  std::optional<cluster::Failure> failure_;  // written once
  WorkerGroups* groups_ = nullptr;
  std::thread thread_;
};

}  // namespace muster::train
