#include "muster/checkpoint/removal.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace muster::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds patience{3000};

// The one job in `folder`, if it is a job's.
std::vector<FoundJob> only(const fs::path& folder, Storage& storage) {
  std::vector<FoundJob> jobs = jobs_below(folder.parent_path(), storage);
  std::erase_if(jobs,
                [&](const FoundJob& job) { return fs::path(job.path).filename() != folder.filename(); });
  return jobs;
}

// Out of the way in one step, so that nothing stays that looks whole.
Result<std::string> put_away(const std::string& folder, Storage& storage) {
  const fs::path path = folder;
  std::string gone = path.parent_path() / (std::string(gone_prefix) + path.filename().string());
  MUSTER_TRY_VOID(storage.remove_folder(gone));  // of a removal that was cut short
  MUSTER_TRY_VOID(storage.rename(folder, gone));
  return gone;
}

Result<bool> has_other_workers(const FoundJob& job, Storage& storage) {
  MUSTER_TRY(const std::vector<std::string> names, storage.list(job.path));
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto rank = rank_of_folder(name);
    return rank && std::find(job.ranks.begin(), job.ranks.end(), *rank) == job.ranks.end();
  });
}

}  // namespace

std::vector<FoundJob> jobs_at(const std::string& path, Storage& storage) {
  const fs::path folder = without_slash(path);
  if (const auto rank = rank_of_folder(folder.filename().string())) {
    std::vector<FoundJob> jobs = only(folder.parent_path(), storage);
    if (jobs.empty() || !std::binary_search(jobs[0].ranks.begin(), jobs[0].ranks.end(), *rank)) return {};
    jobs[0].ranks = {*rank};
    return jobs;
  }
  if (folder.filename().string().starts_with(job_prefix)) return only(folder, storage);
  return jobs_below(folder, storage);
}

std::string recovery_path_of(const FoundJob& job) { return fs::path(job.path).parent_path(); }

Result<> remove_job(const FoundJob& job, Storage& storage) {
  const std::string gate = fmt::format("{}/{}", recovery_path_of(job), gate_file);
  auto passing = storage.lock(gate, Sharing::exclusive, patience);
  if (!passing && passing.error().code != Code::not_provided) return fail(std::move(passing).error());
  if (storage.is_locked(fmt::format("{}/{}", job.path, in_use_file)).value_or(false))
    return fail(Code::refused,
                fmt::format("job {} is in use ({}): end it first", job.job, owners_text(job, storage)));
  MUSTER_TRY(const bool is_part, has_other_workers(job, storage));
  std::vector<std::string> gone;
  if (is_part) {
    for (const std::uint64_t rank : job.ranks) {
      MUSTER_TRY(std::string folder,
                 put_away(fmt::format("{}/{}{}", job.path, worker_prefix, rank), storage));
      gone.push_back(std::move(folder));
    }
  } else {
    MUSTER_TRY(std::string folder, put_away(job.path, storage));
    gone.push_back(std::move(folder));
  }
  if (passing) passing->reset();
  for (const std::string& folder : gone) MUSTER_TRY_VOID(storage.remove_folder(folder));
  return {};
}

}  // namespace muster::checkpoint
