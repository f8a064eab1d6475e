// Ends this process when the job has failed and the main thread does not.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "muster/cluster/cluster.h"
#include "muster/train/epochs.h"

namespace muster::train {

// Threads: any.
class Watch {
 public:
  Watch() = default;
  ~Watch() { stand_down(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Whose waits end when the job fails; borrowed until the end of the process.
  void attach(Epochs& epochs);

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
  Epochs* epochs_ = nullptr;
  std::thread thread_;
};

// Called, with a bounded wait, before the process is ended: to flush the streams of a language above.
void set_exit_hook(std::function<void()> hook);
// What the hook does, at once and on this thread.
void flush_front_end();

}  // namespace muster::train
