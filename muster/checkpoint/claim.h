// Jobs on one path (MS_RECOVERY_PATH): one at a time, and none of them removes anything of another one that
// is not done.
#pragma once

#include <memory>

#include "muster/checkpoint/run_store.h"
#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

// That the path is used by the job while this lives. Each process of the job has one.
class JobClaim {
 public:
  // Makes the job's folder. The first process of a job looks at the jobs that are there: one that is under
  // way or not finished is an error (refused) that says what to type; `options.fresh` throws away what is not
  // finished, and says so. What is thrown away, or done, is removed.
  static Result<JobClaim> take(const RunOptions& options, Storage& storage);

 private:
  explicit JobClaim(std::unique_ptr<LockedFile> in_use) : in_use_(std::move(in_use)) {}

  std::unique_ptr<LockedFile> in_use_;  // null where nothing can be locked
};

}  // namespace muster::checkpoint
