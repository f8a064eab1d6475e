#include "muster/train/found_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "muster/base/base.h"
#include "muster/checkpoint/checkpoint.h"

namespace muster::train {
namespace {

constexpr std::string_view seed_file = "seed";
constexpr std::size_t seed_digits = 16;

std::optional<std::uint64_t> number_of(std::string_view digits) {
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (digits.size() != seed_digits || failed != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  return number;
}

std::optional<std::uint64_t> seed_in(const std::string& worker_folder) {
  const auto bytes = real_files().read(fmt::format("{}/{}", worker_folder, seed_file));
  if (!bytes) return std::nullopt;
  return number_of({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
}

// Of the calls 0 to n-1 each has its end in the journal: n.
std::uint64_t finished_calls_in(const std::string& worker_folder) {
  const auto journal = checkpoint::read_journal(fmt::format("{}/{}", worker_folder, checkpoint::journal_file),
                                                checkpoint::real_storage());
  if (!journal) return 0;
  std::uint64_t count = 0;
  while (journal->records.contains(count)) ++count;
  return count;
}

cluster::FoundJob describe(const checkpoint::FoundJob& job) {
  cluster::FoundJob found{.job_id = number_of(job.job).value_or(0),
                          .worker_num = static_cast<std::uint32_t>(job.world_size),
                          .finished_calls = std::numeric_limits<std::uint64_t>::max(),
                          .epoch = job.epoch,
                          .is_done = job.is_done,
                          .is_in_use = job.is_in_use,
                          .newest = to_string(job.newest),
                          .folder = job.path};
  for (const std::uint64_t rank : job.ranks) {
    const std::string folder = fmt::format("{}/{}{}", job.path, checkpoint::worker_prefix, rank);
    if (!found.seed) found.seed = seed_in(folder);
    found.finished_calls = std::min(found.finished_calls, finished_calls_in(folder));
    if (found.ranks.size() < cluster::found_ranks_max)
      found.ranks.push_back(static_cast<std::uint32_t>(rank));
  }
  return found;
}

}  // namespace

std::vector<cluster::FoundJob> jobs_found_in(const std::string& recovery_path) {
  std::vector<cluster::FoundJob> found;
  for (const checkpoint::FoundJob& job : checkpoint::jobs_below(recovery_path))
    if (!job.ranks.empty()) found.push_back(describe(job));
  return found;
}

std::optional<std::string> holders_of(const std::string& recovery_path, std::uint64_t job_id) {
  const std::string id = fmt::format("{:016x}", job_id);
  for (const checkpoint::FoundJob& job : checkpoint::jobs_below(recovery_path))
    if (job.job == id && job.is_in_use) return checkpoint::owners_text(job);
  return std::nullopt;
}

void keep_seed(const std::string& worker_folder, std::uint64_t seed) {
  if (seed_in(worker_folder) == seed) return;
  const std::string digits = fmt::format("{:016x}", seed);
  const auto kept =
      real_files().write(fmt::format("{}/{}", worker_folder, seed_file), std::as_bytes(std::span(digits)));
  if (!kept)
    log::warning(
        fmt::format("the seed of the job is not kept, which others need only where the scheduler loses its "
                    "folder: {}",
                    kept.error().message));
}

}  // namespace muster::train
