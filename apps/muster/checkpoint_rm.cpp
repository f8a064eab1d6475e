#include "checkpoint_rm.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string_view>

#include "commands.h"
#include "muster/checkpoint/checkpoint.h"

namespace muster::app {
namespace {

namespace fs = std::filesystem;
using checkpoint::FoundJob;

constexpr int exit_code_kept = 1;

// What is to go.
struct Doomed {
  std::vector<FoundJob> jobs = {};
  fs::path scheduler_log = {};  // empty: it stays
};

std::vector<fs::path> folders_of(const FoundJob& job) {
  std::vector<fs::path> folders;
  for (const std::uint64_t rank : job.ranks)
    folders.push_back(fs::path(job.path) / fmt::format("{}{}", checkpoint::worker_prefix, rank));
  return folders;
}

std::uint64_t bytes_below(const fs::path& folder) {
  std::uint64_t total = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) total += at->file_size(ignored);
  }
  return total;
}

bool is_whole(const FoundJob& job) {
  for (const FoundJob& there : checkpoint::jobs_below(checkpoint::recovery_path_of(job)))
    if (there.job == job.job) return there.ranks == job.ranks;
  return false;
}

// The scheduler's log speaks of the last job on its path: without that it would wait for what is gone.
Doomed find(const fs::path& path) {
  Doomed doomed{.jobs = checkpoint::jobs_at(path)};
  fs::path root = path;
  for (const FoundJob& job : doomed.jobs) {
    root = checkpoint::recovery_path_of(job);
    if (!is_whole(job)) return doomed;
  }
  if (checkpoint::jobs_below(root).size() != doomed.jobs.size()) return doomed;
  std::error_code error;
  if (fs::is_regular_file(root / "scheduler.log", error)) doomed.scheduler_log = root / "scheduler.log";
  return doomed;
}

bool is_scheduler_running(const fs::path& log) {
  const int fd = ::open((log.parent_path() / "scheduler.lock").c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  const bool is_locked = ::flock(fd, LOCK_EX | LOCK_NB) != 0;
  ::close(fd);
  return is_locked;
}

void show(const Doomed& doomed) {
  for (const FoundJob& job : doomed.jobs) {
    std::uint64_t bytes = 0;
    for (const fs::path& folder : folders_of(job)) bytes += bytes_below(folder);
    fmt::print("job {}, {}, {}, as far as {}, {}: {}\n", job.job, job.is_done ? "done" : "NOT FINISHED",
               ranks_text(job), to_string(job.newest), size_text(bytes), job.path);
  }
  if (!doomed.scheduler_log.empty()) fmt::print("the scheduler's log: {}\n", doomed.scheduler_log.string());
}

bool says_yes() {
  fmt::print("Remove this for good? [y/N] ");
  std::fflush(stdout);
  char answer[8] = {};
  return std::fgets(answer, sizeof answer, stdin) != nullptr && (answer[0] == 'y' || answer[0] == 'Y');
}

int remove(const Doomed& doomed) {
  for (const FoundJob& job : doomed.jobs)
    if (const auto removed = checkpoint::remove_job(job); !removed)
      return refuse("checkpoint rm", removed.error().message, exit_code_kept);
  std::error_code error;
  if (!doomed.scheduler_log.empty() && !fs::remove(doomed.scheduler_log, error) && error)
    return refuse("checkpoint rm",
                  fmt::format("cannot remove '{}': {}", doomed.scheduler_log.string(), error.message()),
                  exit_code_kept);
  fmt::print("removed\n");
  return 0;
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  const char* units[] = {"kB", "MB", "GB", "TB"};
  double size = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  for (; size >= 1000 && unit < 3; ++unit) size /= 1000;
  return fmt::format("{:.1f} {}", size, units[unit]);
}

int remove_points(const std::string& path, bool is_confirmed) {
  const Doomed doomed = find(fs::absolute(path).lexically_normal());
  if (doomed.jobs.empty() && doomed.scheduler_log.empty())
    return refuse(
        "checkpoint rm",
        fmt::format("there are no recovery points in '{}': name MS_RECOVERY_PATH, the folder of a job, or "
                    "that of a worker in it",
                    path),
        exit_code_usage);
  show(doomed);
  for (const FoundJob& job : doomed.jobs)
    if (job.is_in_use)
      return refuse("checkpoint rm",
                    fmt::format("job {} is in use ({}): end it first", job.job, owners_text(job)),
                    exit_code_kept);
  if (!doomed.scheduler_log.empty() && is_scheduler_running(doomed.scheduler_log))
    return refuse("checkpoint rm",
                  fmt::format("a scheduler uses '{}': end it first", doomed.scheduler_log.string()),
                  exit_code_kept);
  if (!is_confirmed && ::isatty(STDIN_FILENO) != 1)
    return refuse(
        "checkpoint rm",
        "nothing was removed: standard input is no terminal, so that there is no one to ask; give --yes");
  if (!is_confirmed && !says_yes()) return refuse("checkpoint rm", "nothing was removed", exit_code_kept);
  return remove(doomed);
}

}  // namespace muster::app
