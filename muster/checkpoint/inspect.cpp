#include "muster/checkpoint/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "muster/checkpoint/journal.h"
#include "muster/checkpoint/point_files.h"
#include "muster/checkpoint/run_folders.h"
#include "muster/checkpoint/safetensors.h"
#include "muster/checkpoint/store.h"

namespace muster::checkpoint {
namespace {

constexpr int depth_max = 4;

FoundPoint look_at_point(const std::string& folder, const Storage& storage) {
  FoundPoint point{.folder = folder};
  auto manifest = read_manifest(folder, storage);
  if (manifest)
    point.manifest = *std::move(manifest);
  else
    point.problem = manifest.error().message;
  return point;
}

FoundWorker look_at_worker(const std::string& folder, const std::vector<std::string>& names,
                           const Storage& storage) {
  FoundWorker worker{.folder = folder};
  std::vector<PointId> ids;
  for (const std::string& name : names)
    if (const auto id = point_of_folder(name)) ids.push_back(*id);
  std::sort(ids.begin(), ids.end());
  for (const PointId& id : ids) {
    worker.points.push_back(look_at_point(fmt::format("{}/{}", folder, folder_name(id)), storage));
    if (const auto& manifest = worker.points.back().manifest) {
      worker.job = manifest->job;
      worker.world_size = manifest->world_size;
      worker.rank = manifest->rank;
    }
  }
  if (!has(names, journal_file)) return worker;
  auto journal = read_journal(fmt::format("{}/{}", folder, journal_file), storage);
  if (!journal) {
    worker.problems.push_back(journal.error().message);
    return worker;
  }
  worker.job = journal->identity.job;
  worker.world_size = journal->identity.world_size;
  worker.rank = journal->identity.rank;
  for (auto& [call, record] : journal->records) worker.finished.push_back(std::move(record));
  return worker;
}

bool is_worker(const std::vector<std::string>& names) {
  return has(names, journal_file) || std::any_of(names.begin(), names.end(), [](const std::string& name) {
           return point_of_folder(name).has_value();
         });
}

void look_below(const std::string& folder, const Storage& storage, int depth,
                std::vector<FoundWorker>& found) {
  const auto names = storage.list(folder);
  if (!names) return;
  if (is_worker(*names)) {
    found.push_back(look_at_worker(folder, *names, storage));
    return;
  }
  for (const std::string& name : *names)
    if (depth > 0 && (name.starts_with(job_prefix) || name.starts_with(worker_prefix)))
      look_below(fmt::format("{}/{}", folder, name), storage, depth - 1, found);
}

// Numbers in names count as numbers.
bool comes_before(const std::string& one, const std::string& other) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  std::size_t i = 0, j = 0;
  while (i < one.size() && j < other.size()) {
    if (!is_digit(one[i]) || !is_digit(other[j])) {
      if (one[i] != other[j]) return one[i] < other[j];
      ++i, ++j;
      continue;
    }
    std::size_t one_end = i, other_end = j;
    while (one_end < one.size() && is_digit(one[one_end])) ++one_end;
    while (other_end < other.size() && is_digit(other[other_end])) ++other_end;
    const std::string_view a = std::string_view(one).substr(i, one_end - i);
    const std::string_view b = std::string_view(other).substr(j, other_end - j);
    if (a.size() != b.size()) return a.size() < b.size();
    if (a != b) return a < b;
    i = one_end, j = other_end;
  }
  return one.size() - i < other.size() - j;
}

void find_files(const std::string& folder, const std::string& prefix, const Storage& storage, int depth,
                std::vector<std::string>& found) {
  const auto names = storage.list(folder);
  if (!names) return;
  for (const std::string& name : *names) {
    if (is_tensor_file(name))
      found.push_back(prefix + name);
    else if (depth > 0)
      find_files(fmt::format("{}/{}", folder, name), prefix + name + '/', storage, depth - 1, found);
  }
}

}  // namespace

bool is_tensor_file(const std::string& path) {
  return path.ends_with(extension) || path.ends_with(safetensors::extension);
}

Result<std::vector<FoundWorker>> find_workers(const std::string& path, const Storage& storage) {
  const std::string folder = without_slash(path);
  MUSTER_TRY(const std::vector<std::string> names, storage.list(folder));
  std::vector<FoundWorker> found;
  if (has(names, manifest_file)) {
    FoundWorker worker{.folder = folder, .points = {look_at_point(folder, storage)}};
    if (const auto& manifest = worker.points.front().manifest) {
      worker.job = manifest->job;
      worker.world_size = manifest->world_size;
      worker.rank = manifest->rank;
    }
    found.push_back(std::move(worker));
  } else {
    look_below(folder, storage, 2, found);
  }
  if (found.empty())
    return fail(
        Code::not_found,
        fmt::format("there are no recovery points in '{}': name MS_RECOVERY_PATH, the folder of a job, of a "
                    "worker or of a point in it, or a .ckpt or .safetensors file",
                    path));
  std::sort(found.begin(), found.end(), [](const FoundWorker& a, const FoundWorker& b) {
    return std::tie(a.job, a.rank, a.folder) < std::tie(b.job, b.rank, b.folder);
  });
  return found;
}

void verify(FoundPoint& point, const Storage& storage) {
  if (!point.manifest) return;
  if (const auto read = read_point(point.folder, *point.manifest, storage); !read)
    point.problem = read.error().message;
}

std::optional<PointId> newest_common_point(const std::vector<FoundWorker>& workers) {
  if (workers.empty() || workers.size() != workers.front().world_size) return std::nullopt;
  std::map<PointId, std::size_t> holders;
  for (const FoundWorker& worker : workers)
    for (const FoundPoint& point : worker.points)
      if (point.manifest && point.problem.empty()) ++holders[point.manifest->id];
  for (auto at = holders.rbegin(); at != holders.rend(); ++at)
    if (at->second == workers.size()) return at->first;
  return std::nullopt;
}

std::optional<PointId> newest_point_below(const std::string& folder, const Storage& storage) {
  std::optional<PointId> newest;
  for (const std::string& worker : worker_folders_below(folder, storage))
    for (const std::string& name : storage.list(worker).value_or(std::vector<std::string>{}))
      if (const auto id = point_of_folder(name); id && (!newest || *newest < *id)) newest = id;
  return newest;
}

std::vector<std::string> find_tensor_files(const std::string& folder, const Storage& storage) {
  std::vector<std::string> found;
  find_files(without_slash(folder), "", storage, depth_max, found);
  std::sort(found.begin(), found.end(), comes_before);
  return found;
}

}  // namespace muster::checkpoint
