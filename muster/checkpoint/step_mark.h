// Step mark: the last step that a process of a job that recovers finished before it died, for the process
// that starts it again. One small file beside its recovery points, written in place after each step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

// The call and the step in it that was finished last.
struct StepPlace {
  std::uint64_t call = 0;
  std::uint64_t step = 0;
  friend bool operator==(const StepPlace&, const StepPlace&) = default;
};

// Survives the death of its process, not that of its host: nothing is synced. One write of 32 bytes a step,
// into the same page of the kernel's cache. Threads: one at a time.
class StepMark {
 public:
  // Below the folder of a worker's points, in place of what an earlier process has there. A mark that cannot
  // be written says nothing.
  StepMark(const std::string& worker_folder, std::int32_t pid);
  ~StepMark();
  StepMark(const StepMark&) = delete;
  StepMark& operator=(const StepMark&) = delete;

  void set(const StepPlace& place);

 private:
  std::int32_t pid_;
  int fd_ = -1;
};

// What the process `pid` has left in the folders of all jobs (MS_RECOVERY_PATH); nothing: it made no step.
std::optional<StepPlace> step_of_process(const std::string& folder, std::int32_t pid, const Storage& storage);

}  // namespace muster::checkpoint
