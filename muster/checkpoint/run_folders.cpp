#include "muster/checkpoint/run_folders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "muster/checkpoint/journal.h"
#include "muster/checkpoint/manifest.h"
#include "muster/checkpoint/ownership.h"
#include "muster/checkpoint/point_files.h"

namespace muster::checkpoint {
namespace {

constexpr std::size_t named_max = 3;
constexpr std::string_view point_prefix = "call_";

std::string first_of(std::vector<std::string> texts) {
  const bool are_more = texts.size() > named_max;
  if (are_more) texts.resize(named_max);
  return fmt::format("{}{}", fmt::join(texts, ", "), are_more ? ", ..." : "");
}

// Adds what the folder of one worker tells.
void look_at_worker(const std::string& folder, const Storage& storage, FoundJob& job) {
  const auto names = storage.list(folder);
  if (!names) {
    job.is_done = false;  // it is not known
    return;
  }
  bool is_empty = true;
  for (std::string_view name : *names) {
    if (name.starts_with(old_prefix)) name.remove_prefix(old_prefix.size());  // it may be all that is left
    is_empty = is_empty && !name.starts_with(point_prefix);                   // damaged or not
    if (const auto id = point_of_folder(name)) job.newest = std::max(job.newest, *id);
  }
  if (has(*names, journal_file)) {
    const auto journal = read_journal(fmt::format("{}/{}", folder, journal_file), storage);
    if (journal) job.world_size = journal->identity.world_size;
    is_empty = is_empty && journal && journal->records.empty();
  }
  if (!is_empty && !has(*names, done_file)) job.is_done = false;
  job.epoch = std::max(job.epoch, epoch_of_owner(folder, storage));
}

FoundJob look_at_job(const std::string& job, const std::string& path, const Storage& storage) {
  FoundJob found{.job = job, .path = path, .is_done = true};
  for (const std::string& name : storage.list(path).value_or(std::vector<std::string>{})) {
    const auto rank = rank_of_folder(name);
    if (!rank) continue;
    found.ranks.push_back(*rank);
    look_at_worker(fmt::format("{}/{}", path, name), storage, found);
  }
  std::sort(found.ranks.begin(), found.ranks.end());
  found.is_in_use = storage.is_locked(fmt::format("{}/{}", path, in_use_file)).value_or(false);
  return found;
}

void remove_with_warning(const std::string& path, Storage& storage) {
  if (const auto removed = storage.remove_folder(path); !removed) log::warning(removed.error().message);
}

}  // namespace

std::optional<std::uint64_t> rank_of_folder(std::string_view name) {
  if (!name.starts_with(worker_prefix)) return std::nullopt;
  name.remove_prefix(worker_prefix.size());
  std::uint64_t rank = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), rank);
  if (failed != std::errc() || end != name.data() + name.size() || std::to_string(rank) != name)
    return std::nullopt;
  return rank;
}

std::vector<FoundJob> jobs_below(const std::string& folder, Storage& storage) {
  std::vector<FoundJob> found;
  for (const std::string& name : storage.list(folder).value_or(std::vector<std::string>{})) {
    const std::string_view job = std::string_view(name).substr(std::min(name.size(), job_prefix.size()));
    if (!name.starts_with(job_prefix) || !is_job(job)) continue;
    found.push_back(look_at_job(std::string(job), fmt::format("{}/{}", folder, name), storage));
  }
  return found;
}

std::string ranks_text(const FoundJob& job) {
  std::vector<std::string> ranks;
  for (const std::uint64_t rank : job.ranks) ranks.push_back(std::to_string(rank));
  return fmt::format("worker{} {} of {}", job.ranks.size() == 1 ? "" : "s", first_of(std::move(ranks)),
                     job.world_size);
}

std::string owners_text(const FoundJob& job, const Storage& storage) {
  std::vector<std::string> owners;
  for (const std::uint64_t rank : job.ranks) {
    const std::string owner = owner_of(fmt::format("{}/{}{}", job.path, worker_prefix, rank), storage);
    if (!owner.empty()) owners.push_back(fmt::format("worker {} is {}", rank, owner));
  }
  return first_of(std::move(owners));
}

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

void remove_damaged(const std::string& root, Storage& storage) {
  const auto names = storage.list(root);
  if (!names) return;
  for (const std::string& name : *names)
    if (name.ends_with(damaged_suffix) && name.starts_with(point_prefix))
      remove_with_warning(fmt::format("{}/{}", root, name), storage);
}

}  // namespace muster::checkpoint
