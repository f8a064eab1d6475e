#include "muster/checkpoint/run_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "muster/checkpoint/manifest.h"
#include "muster/checkpoint/point_files.h"

namespace muster::checkpoint {
namespace {

std::optional<std::uint64_t> rank_of_folder(std::string_view name) {
  if (!name.starts_with(worker_prefix)) return std::nullopt;
  name.remove_prefix(worker_prefix.size());
  std::uint64_t rank = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), rank);
  if (failed != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return rank;
}

void remove_with_warning(const std::string& path, Storage& storage) {
  if (const auto removed = storage.remove_folder(path); !removed) log::warning(removed.error().message);
}

}  // namespace

std::string worker_folder(const RunOptions& options) {
  return fmt::format("{}/{}{}/{}{}", options.folder, job_prefix, options.job, worker_prefix, options.rank);
}

std::vector<std::string> worker_folders_below(const std::string& folder, const Storage& storage) {
  std::vector<std::string> found;
  const auto names_in = [&](const std::string& path) {
    return storage.list(path).value_or(std::vector<std::string>{});
  };
  for (const std::string& job : names_in(folder)) {
    if (!job.starts_with(job_prefix)) continue;
    for (const std::string& worker : names_in(fmt::format("{}/{}", folder, job)))
      found.push_back(fmt::format("{}/{}/{}", folder, job, worker));
  }
  return found;
}

Result<> remove_leftovers(const std::string& root, Storage& storage) {
  MUSTER_TRY(const std::vector<std::string> names, storage.list(root));
  for (const std::string& name : names) {
    const std::string path = fmt::format("{}/{}", root, name);
    if (name.starts_with(new_prefix)) {
      MUSTER_TRY_VOID(storage.remove_folder(path));
    } else if (name.starts_with(old_prefix)) {
      // Replaced by one that is there, or about to be replaced by one that never came.
      const std::string newer = name.substr(old_prefix.size());
      if (std::find(names.begin(), names.end(), newer) != names.end()) {
        MUSTER_TRY_VOID(storage.remove_folder(path));
      } else {
        MUSTER_TRY_VOID(storage.rename(path, fmt::format("{}/{}", root, newer)));
      }
    }
  }
  return {};
}

void remove_other_jobs(const RunOptions& options, Storage& storage) {
  const auto jobs = storage.list(options.folder);
  if (!jobs) return;
  for (const std::string& job : *jobs) {
    if (!job.starts_with(job_prefix) || !is_job(std::string_view(job).substr(job_prefix.size()))) continue;
    if (job == fmt::format("{}{}", job_prefix, options.job)) continue;
    const std::string folder = fmt::format("{}/{}", options.folder, job);
    const auto workers = storage.list(folder);
    if (!workers) continue;
    std::size_t left = workers->size();
    for (const std::string& worker : *workers) {
      const auto rank = rank_of_folder(worker);
      if (!rank || *rank % options.world != options.rank) continue;
      log::info(fmt::format("removing the recovery points of an earlier job: {}/{}", folder, worker));
      remove_with_warning(fmt::format("{}/{}", folder, worker), storage);
      --left;
    }
    if (left == 0) remove_with_warning(folder, storage);
  }
}

void remove_damaged(const std::string& root, Storage& storage) {
  const auto names = storage.list(root);
  if (!names) return;
  for (const std::string& name : *names)
    if (name.ends_with(damaged_suffix) && name.starts_with("call_"))
      remove_with_warning(fmt::format("{}/{}", root, name), storage);
}

}  // namespace muster::checkpoint
