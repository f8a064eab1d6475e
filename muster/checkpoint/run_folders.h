// The folders of recovery points, and what is to be cleared away in them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/checkpoint/run_store.h"
#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

inline constexpr std::string_view job_prefix = "job-";
inline constexpr std::string_view worker_prefix = "worker_";
inline constexpr std::string_view journal_file = "finished.log";
inline constexpr std::string_view ledger_file = "steps.log";
inline constexpr std::string_view step_file = "step";
inline constexpr std::string_view damaged_suffix = ".damaged";

// <folder>/job-<job>/worker_<rank>
std::string worker_folder(const RunOptions& options);

// <folder>/job-<job>/<worker> of all jobs. What cannot be listed is left out.
std::vector<std::string> worker_folders_below(const std::string& folder, const Storage& storage);

// What a kill has left half made, half replaced or half removed.
Result<> remove_leftovers(const std::string& root, Storage& storage);

// The folders of other jobs of this rank, and those of ranks that this job has not. Whoever starts a job
// below a folder has made sure that no other one is going on there. Failures are warnings.
void remove_other_jobs(const RunOptions& options, Storage& storage);

// Points that were put aside. Failures are warnings.
void remove_damaged(const std::string& root, Storage& storage);

}  // namespace muster::checkpoint
