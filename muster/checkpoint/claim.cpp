#include "muster/checkpoint/claim.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "muster/checkpoint/ownership.h"
#include "muster/checkpoint/run_folders.h"

namespace muster::checkpoint {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds pause{10};
constexpr std::size_t gate_patience = 10;  // times that for one lock: a crowd passes it one by one
constexpr std::size_t named_max = 3;

// Until `holds` does, or the patience ends.
template <class Condition>
bool wait_for(milliseconds patience, const Condition& holds) {
  const TimePoint deadline = real_clock().now() + patience;
  while (!holds()) {
    if (real_clock().now() >= deadline) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

std::string job_folder(const RunOptions& options) {
  return fmt::format("{}/{}{}", options.folder, job_prefix, options.job);
}

std::string of_first(std::vector<std::string> texts) {
  const bool are_more = texts.size() > named_max;
  if (are_more) texts.resize(named_max);
  return fmt::format("{}{}", fmt::join(texts, ", "), are_more ? ", ..." : "");
}

std::string ranks_text(const FoundJob& job) {
  std::vector<std::string> ranks;
  for (const std::uint64_t rank : job.ranks) ranks.push_back(std::to_string(rank));
  return fmt::format("worker{} {} of {}", job.ranks.size() == 1 ? "" : "s", of_first(std::move(ranks)),
                     job.world);
}

std::string processes_text(const FoundJob& job, const Storage& storage) {
  std::vector<std::string> processes;
  for (const std::uint64_t rank : job.ranks)
    if (std::string owner = owner_of(fmt::format("{}/{}{}", job.path, worker_prefix, rank), storage);
        !owner.empty())
      processes.push_back(fmt::format("worker {} is {}", rank, owner));
  return of_first(std::move(processes));
}

tl::unexpected<Error> in_use_by(const FoundJob& job, const RunOptions& options, const Storage& storage) {
  return fail(
      Code::refused,
      fmt::format("MS_RECOVERY_PATH='{}' is in use by job {} ({}): wait until it has ended, or give this "
                  "job another folder",
                  options.folder, job.job, processes_text(job, storage)));
}

tl::unexpected<Error> not_finished(const FoundJob& job, const RunOptions& options) {
  return fail(
      Code::refused,
      fmt::format("MS_RECOVERY_PATH='{}' holds job {}, which is not finished: '{}' goes as far as {} ({}), "
                  "and nothing of it is removed. Start it as it was to go on with it; to begin anew set "
                  "MUSTER_FRESH=1, or `muster checkpoint rm {}`",
                  options.folder, job.job, job.path, to_string(job.newest), ranks_text(job), job.path));
}

// Out of the way in one step, to be removed where nobody waits for it.
void put_away(const FoundJob& job, const RunOptions& options, Storage& storage) {
  if (!job.is_done)
    log::warning(fmt::format("MUSTER_FRESH=1: removing job {}, which is not finished: '{}' ({}, up to {})",
                             job.job, job.path, ranks_text(job), to_string(job.newest)));
  const std::string gone = fmt::format("{}/{}{}{}", options.folder, gone_prefix, job_prefix, job.job);
  (void)storage.remove_folder(gone);  // of a removal that was cut short
  if (const auto renamed = storage.rename(job.path, gone); !renamed) log::warning(renamed.error().message);
}

Result<> clear_other_jobs(const RunOptions& options, Storage& storage) {
  std::vector<FoundJob> others = jobs_below(options.folder, storage);
  std::erase_if(others, [&](const FoundJob& job) { return job.job == options.job; });
  for (const FoundJob& job : others) {
    // Processes that were just killed may not be gone quite yet.
    const std::string in_use = fmt::format("{}/{}", job.path, in_use_file);
    if (!wait_for(options.patience, [&] { return !storage.is_locked(in_use).value_or(false); }))
      return in_use_by(job, options, storage);
    if (!job.is_done && !options.fresh) return not_finished(job, options);
  }
  for (const FoundJob& job : others) put_away(job, options, storage);
  return {};
}

// The share of this rank, so that the workers of a great job are at it together.
void remove_gone(const RunOptions& options, Storage& storage) {
  const auto names = storage.list(options.folder);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(gone_prefix)) continue;
    const std::string gone = fmt::format("{}/{}", options.folder, name);
    bool is_left = false;
    for (const std::string& worker : storage.list(gone).value_or(std::vector<std::string>{})) {
      const auto rank = rank_of_folder(worker);
      if (!rank) continue;
      if (*rank % options.world != options.rank) {
        is_left = true;
      } else if (const auto removed = storage.remove_folder(fmt::format("{}/{}", gone, worker)); !removed) {
        log::warning(removed.error().message);
        is_left = true;
      }
    }
    if (is_left) continue;
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
  // One that is under way has been let in already.
  const auto is_under_way = [&] { return storage.is_locked(in_use).value_or(false); };
  Result<std::unique_ptr<LockedFile>> passing = nullptr;
  const bool is_let_in = wait_for(gate_patience * options.patience, [&] {
    if (is_under_way()) {
      passing = nullptr;
      return true;
    }
    passing = lock_if_possible(gate, Sharing::exclusive, {}, storage);
    return passing || passing.error().code != Code::refused;
  });
  if (!is_let_in)
    return fail(Code::timeout,
                fmt::format("'{}' stays locked: a process that begins a job below '{}' is stopped", gate,
                            options.folder));
  if (!passing) return fail(std::move(passing).error());
  if (!is_under_way()) MUSTER_TRY_VOID(clear_other_jobs(options, storage));
  MUSTER_TRY_VOID(storage.make_folder(job_folder(options)));
  MUSTER_TRY(auto locked, lock_if_possible(in_use, Sharing::shared, options.patience, storage));
  passing->reset();
  remove_gone(options, storage);
  return JobClaim(std::move(locked));
}

}  // namespace muster::checkpoint
