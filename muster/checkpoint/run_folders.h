// The folders of recovery points, and what is to be cleared away in them.
#pragma once

#include <cstdint>
#include <optional>
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
inline constexpr std::string_view done_file = "done";       // in a worker's folder
inline constexpr std::string_view owner_file = "owner";     // in a worker's folder
inline constexpr std::string_view common_file = "common";   // in a worker's folder
inline constexpr std::string_view begun_file = "begun";     // in a worker's folder
inline constexpr std::string_view in_use_file = "in-use";   // in a job's folder
inline constexpr std::string_view gate_file = "jobs.lock";  // in the folder of all jobs
inline constexpr std::string_view gone_prefix = ".gone-";   // a job on its way out

// <folder>/job-<job>/worker_<rank>
std::string worker_folder(const RunOptions& options);

// <folder>/job-<job>/<worker> of all jobs. What cannot be listed is left out.
std::vector<std::string> worker_folders_below(const std::string& folder, const Storage& storage);

// N of "worker_N".
std::optional<std::uint64_t> rank_of_folder(std::string_view name);

// A job that has left something below a folder (MS_RECOVERY_PATH).
struct FoundJob {
  std::string job = {};
  std::uint64_t world_size = 0;           // 0: nothing says it
  std::vector<std::uint64_t> ranks = {};  // whose folders are here, sorted
  PointId newest = {};                    // by names; the start of call 0 where there is none
  std::string path = {};                  // of its folder
  std::uint64_t epoch = 0;                // the newest in which a process has taken one of the folders
  bool is_done = false;    // nothing in it is needed: each worker has left well, or kept nothing
  bool is_in_use = false;  // a process of it is under way
};

// Sorted by id. What cannot be read is left out.
std::vector<FoundJob> jobs_below(const std::string& folder, Storage& storage = real_storage());

// For people: "workers 0, 1 of 2"; "worker 0 is pid 4711 on node-a", as far as the folders tell.
std::string ranks_text(const FoundJob& job);
std::string owners_text(const FoundJob& job, const Storage& storage = real_storage());

// What a kill has left half made, half replaced or half removed.
Result<> remove_leftovers(const std::string& root, Storage& storage);

// Points that were put aside. Failures are warnings.
void remove_damaged(const std::string& root, Storage& storage);

}  // namespace muster::checkpoint
