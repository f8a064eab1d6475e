#include "muster/checkpoint/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "muster/checkpoint/run_folders.h"

namespace muster::checkpoint {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds pause{10};
constexpr std::size_t gate_patience = 10;  // times that for one lock: a crowd passes it one by one

// Until `holds` does, or the patience ends.
template <class Condition>
bool wait_for(milliseconds patience, const Condition& holds) {
  for (milliseconds waited{0}; !holds(); waited += pause) {
    if (waited >= patience) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

std::string job_folder(const RunOptions& options) {
  return fmt::format("{}/{}{}", options.folder, job_prefix, options.job);
}

tl::unexpected<Error> in_use_by(const FoundJob& job, const RunOptions& options, const Storage& storage) {
  return fail(
      Code::refused,
      fmt::format("MS_RECOVERY_PATH='{}' is in use by job {} ({}): wait until it has ended, or give this "
                  "job another folder",
                  options.folder, job.job, owners_text(job, storage)));
}

tl::unexpected<Error> not_finished(const FoundJob& job, const RunOptions& options) {
  return fail(
      Code::refused,
      fmt::format("MS_RECOVERY_PATH='{}' holds job {}, which is not finished: '{}' goes as far as {} ({}), "
                  "and nothing of it is removed. Start it as it was to go on with it; to begin anew set "
                  "MUSTER_FRESH=1, or `muster checkpoint rm {}`",
                  options.folder, job.job, job.path, to_string(job.newest), ranks_text(job), job.path));
}

// Out of the way in one step, to be removed where no process waits for it.
void put_away(const FoundJob& job, const RunOptions& options, Storage& storage) {
  if (!job.is_done)
    log::warning(fmt::format("MUSTER_FRESH=1: removing job {}, which is not finished: '{}' ({}, up to {})",
                             job.job, job.path, ranks_text(job), to_string(job.newest)));
  const std::string gone = fmt::format("{}/{}{}{}", options.folder, gone_prefix, job_prefix, job.job);
  (void)storage.remove_folder(gone);  // of a removal that was cut short
  if (const auto renamed = storage.rename(job.path, gone); !renamed) log::warning(renamed.error().message);
}

bool is_in_use(const std::string& job_folder, const Storage& storage) {
  return storage.is_locked(fmt::format("{}/{}", job_folder, in_use_file)).value_or(false);
}

// Processes that were just killed may not be gone quite yet.
void wait_for_other_jobs(const RunOptions& options, const Storage& storage) {
  const auto is_free = [&] {
    const auto names = storage.list(options.folder);
    return !names || std::none_of(names->begin(), names->end(), [&](const std::string& name) {
      const std::string folder = fmt::format("{}/{}", options.folder, name);
      return name.starts_with(job_prefix) && folder != job_folder(options) && is_in_use(folder, storage);
    });
  };
  (void)wait_for(options.patience, is_free);
}

Result<> clear_other_jobs(const RunOptions& options, Storage& storage) {
  std::vector<FoundJob> others = jobs_below(options.folder, storage);
  std::erase_if(others, [&](const FoundJob& job) { return job.job == options.job; });
  for (const FoundJob& job : others) {
    if (job.is_in_use) return in_use_by(job, options, storage);
    if (!job.is_done && !options.fresh) return not_finished(job, options);
  }
  for (const FoundJob& job : others) put_away(job, options, storage);
  return {};
}

// Each rank its share, so that the workers of a great job are at it together; the first on this path, which
// may be the only one, then the rest.
void remove_gone(const RunOptions& options, bool is_first, Storage& storage) {
  const auto names = storage.list(options.folder);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(gone_prefix)) continue;
    const std::string gone = fmt::format("{}/{}", options.folder, name);
    bool is_left = false;
    for (const std::string& worker : storage.list(gone).value_or(std::vector<std::string>{})) {
      const auto rank = rank_of_folder(worker);
      if (!rank) continue;
      if (*rank % options.world_size == options.rank)
        (void)storage.remove_folder(fmt::format("{}/{}", gone, worker));  // said below, if it stays
      else
        is_left = true;
    }
    if (is_left && !is_first) continue;
    if (const auto removed = storage.remove_folder(gone); !removed) log::warning(removed.error().message);
  }
}

// Nothing, where this file system has no locks.
Result<std::unique_ptr<LockedFile>> lock_if_possible(const std::string& path, Sharing sharing,
                                                     milliseconds patience, Storage& storage) {
  auto locked = storage.lock(path, sharing, patience);
  if (locked || locked.error().code != Code::not_provided) return locked;
  log::warning(fmt::format("{}: two jobs that use one MS_RECOVERY_PATH are not kept apart here",
                           locked.error().message));
  return nullptr;
}

}  // namespace

Result<JobClaim> JobClaim::take(const RunOptions& options, Storage& storage) {
  const std::string in_use = fmt::format("{}/{}", job_folder(options), in_use_file);
  const std::string gate = fmt::format("{}/{}", options.folder, gate_file);
  MUSTER_TRY_VOID(storage.make_folder(options.folder));
  wait_for_other_jobs(options, storage);
  // One that is under way has been let in already, by the first of its processes to come.
  Result<std::unique_ptr<LockedFile>> passing = nullptr;
  bool is_under_way = false;
  const bool is_let_in = wait_for(gate_patience * options.patience, [&] {
    passing = lock_if_possible(gate, Sharing::exclusive, {}, storage);
    is_under_way = is_in_use(job_folder(options), storage);
    if (is_under_way && !passing) passing = nullptr;
    return passing || passing.error().code != Code::refused;
  });
  if (!is_let_in)
    return fail(Code::timeout,
                fmt::format("'{}' stays locked: a process that begins a job below '{}' is stopped", gate,
                            options.folder));
  if (!passing) return fail(std::move(passing).error());
  if (!is_under_way) MUSTER_TRY_VOID(clear_other_jobs(options, storage));
  MUSTER_TRY_VOID(storage.make_folder(job_folder(options)));
  MUSTER_TRY(auto locked, lock_if_possible(in_use, Sharing::shared, options.patience, storage));
  passing->reset();
  remove_gone(options, !is_under_way, storage);
  return JobClaim(std::move(locked));
}

}  // namespace muster::checkpoint
