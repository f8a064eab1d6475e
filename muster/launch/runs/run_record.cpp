#include "muster/launch/runs/run_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <string_view>

#include "muster/launch/dashboard/job_json.h"
#include "muster/launch/dashboard/network_picture.h"
#include "muster/launch/dashboard/page_actions.h"
#include "muster/launch/dashboard/step_lines.h"
#include "muster/launch/runs/repository.h"
#include "muster/launch/runs/run_description.h"
#include "muster/launch/runs/run_files.h"

namespace muster::launch {
namespace {

constexpr Duration repository_patience = std::chrono::seconds(2);  // of a job that has ended
constexpr Duration ending_patience = std::chrono::seconds(5);

struct flock whole_file(short kind) {
  struct flock lock {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  return lock;
}

Result<> begin_file(const std::string& path, std::string_view text) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  MUSTER_TRY(telemetry::AppendFile file, telemetry::AppendFile::open(path));
  return file.append(text);
}

// Of the run that was here before.
void remove_flights(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == telemetry::flight_extension ||
        entry.path().extension() == telemetry::stacks_extension)
      std::filesystem::remove(entry.path(), ignored);
}

void remove_lines(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with("worker_") && entry.path().extension() == ".json")
      std::filesystem::remove(entry.path(), ignored);
}

// Of a greater job: `from` is how many processes of this kind the new one has, whose logs other hosts may
// have begun already.
void remove_logs(const std::string& folder, std::string_view kind, std::uint64_t from) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() != ".log" || !stem.starts_with(kind)) continue;
    const std::string_view digits = std::string_view(stem).substr(kind.size());
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc{} && end == digits.data() + digits.size() && number >= from)
      std::filesystem::remove(entry.path(), ignored);
  }
}

// As it can be given to --job again: without the folder, which is this one, and without secrets.
std::string job_to_repeat(JobSettings job) {
  std::error_code ignored;
  std::string& script = job.command.value.front();
  if (is_python_script(script)) script = std::filesystem::absolute(script, ignored).string();
  auto entries = job_file_entries(job);
  std::erase_if(entries, [](const JobFileEntry& entry) { return !entry.is_variable && entry.key == "logs"; });
  std::string text =
      fmt::format("# What `muster run` was told, and by whom. In the folder {}:\n# muster run --job {}/{}\n",
                  printable(std::filesystem::current_path(ignored).string()), printable(job.log_folder.value),
                  job_file_name);
  for (const JobFileEntry& entry : entries)
    if (entry.is_variable && names_secret(entry.key))
      text +=
          fmt::format("# The variable {} is not kept: its name is that of a secret.\n", printable(entry.key));
  return text + job_file_text(without_secrets(std::move(entries)), WithOrigins::yes);
}

}  // namespace

Result<std::unique_ptr<RunRecord>> RunRecord::begin(const JobSettings& job, const Environment& environment,
                                                    const Clock& clock) {
  const std::string folder = job.log_folder.value + '/';
  const nlohmann::json description = describe_run(job, environment, telemetry::wall_seconds());
  std::error_code ignored;
  for (const char* name :
       {repository_name, changes_name, page_requests_name, training_name, picture_name, picture_text_name})
    std::filesystem::remove(folder + name, ignored);
  remove_flights(folder + telemetry::flight_folder);
  remove_lines(folder + timeline_folder);
  remove_logs(folder, "worker_", job.slot_count());
  remove_logs(folder, "server_", job.servers.value);
  MUSTER_TRY_VOID(begin_file(folder + description_name, text_of(description)));
  MUSTER_TRY_VOID(begin_file(folder + job_file_name, job_to_repeat(job)));
  MUSTER_TRY_VOID(begin_file(folder + history_name, ""));
  MUSTER_TRY(telemetry::AppendFile history, telemetry::AppendFile::open(folder + history_name));
  const int lock = ::open((folder + history_name).c_str(), O_RDWR | O_CLOEXEC);
  struct flock wanted = whole_file(F_WRLCK);
  if (lock >= 0) ::fcntl(lock, F_OFD_SETLK, &wanted);  // a file system without locks cannot tell, and no more
  std::unique_ptr<RunRecord> record(new RunRecord(std::move(history), lock, clock));
  record->repository_process_ =
      begin_repository_record(folder_of_code(job.command.value), job.log_folder.value, clock);
  return record;
}

RunRecord::~RunRecord() {
  if (lock_ >= 0) ::close(lock_);
}

void RunRecord::append(const std::string& line) {
  if (history_.is_open() && !history_.append(line + '\n')) history_ = {};  // a full disk ends no job
}

void RunRecord::note(const std::string& kind, const std::string& process, const std::string& text) {
  append(line_of({{"event", event_json({kind, telemetry::wall_seconds(), process, text})}}));
}

void RunRecord::end(int exit_code, int signal) {
  append(line_of(
      {{"end", {{"exit_code", exit_code}, {"signal", signal}, {"time", telemetry::wall_seconds()}}}}));
  const TimePoint deadline = clock_.now() + repository_patience;
  while (repository_process_ > 0 && ::waitpid(repository_process_, nullptr, WNOHANG) == 0 &&
         clock_.now() < deadline)
    ::poll(nullptr, 0, 5);
}

Result<> wait_until_free(const std::string& folder, const Clock& clock) {
  const TimePoint deadline = clock.now() + ending_patience;
  while (is_recording(folder) == true) {
    if (clock.now() >= deadline)
      return fail(Code::invalid_argument,
                  fmt::format("another job runs in the folder '{}', and both would write over each other's "
                              "logs: name another with --log-dir, or end that job",
                              printable(folder)));
    ::poll(nullptr, 0, 20);
  }
  return {};
}

std::optional<bool> is_recording(const std::string& folder) {
  const int file = ::open((folder + '/' + history_name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  struct flock asked = whole_file(F_RDLCK);
  const bool is_known = ::fcntl(file, F_OFD_GETLK, &asked) == 0;
  ::close(file);
  if (!is_known) return std::nullopt;
  return asked.l_type != F_UNLCK;
}

}  // namespace muster::launch
