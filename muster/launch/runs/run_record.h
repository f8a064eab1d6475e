// Record of a run in its folder, as the launcher keeps it: `run.json` and `job.toml` say what was started,
// `history.jsonl` what became of it. The process that shows the job (dashboard/job_server.h) adds the
// numbers.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "muster/base/base.h"
#include "muster/launch/dashboard/job_history.h"
#include "muster/launch/settings/job_settings.h"
#include "muster/telemetry/telemetry.h"

namespace muster::launch {

inline constexpr const char* description_name = "run.json";
inline constexpr const char* job_file_name = "job.toml";
inline constexpr const char* repository_name = "repository.json";
inline constexpr const char* changes_name = "changes.diff";
inline constexpr const char* history_name = "history.jsonl";

class RunRecord {
 public:
  // The clock is borrowed. In the job's log folder, which exists; what an earlier run has left of these files
  // there is replaced, as its logs are. Errors name the file.
  static Result<std::unique_ptr<RunRecord>> begin(const JobSettings& job, const Environment& environment,
                                                  const Clock& clock);
  ~RunRecord();

  void note(const std::string& kind, const std::string& process, const std::string& text);
  // The last word. `signal`: that has interrupted the job, or 0.
  void end(int exit_code, int signal);
  // Looks at the repository; it may still run when the job has ended. -1: there is none.
  pid_t repository_process() const { return repository_process_; }

 private:
  RunRecord(telemetry::AppendFile history, int lock, const Clock& clock)
      : history_(std::move(history)), lock_(lock), clock_(clock) {}
  void append(const std::string& line);

  telemetry::AppendFile history_;
  int lock_ = -1;  // held as long as the launcher lives: who reads the folder knows by it that the job runs
  const Clock& clock_;
  pid_t repository_process_ = -1;
};

// The clock is borrowed. Fails where the launcher of that folder's run still lives after a moment, in which
// one that was killed ends: two jobs at once would write over each other's logs and story.
Result<> wait_until_free(const std::string& folder, const Clock& clock);
// Whether the launcher of that folder's run lives; nothing where the file system cannot tell.
std::optional<bool> is_recording(const std::string& folder);

}  // namespace muster::launch
