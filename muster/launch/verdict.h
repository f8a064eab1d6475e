// Verdict on a job that failed: the process that failed first, and how the others ended. Values only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::launch {

// How a process ended.
struct ProcessEnd {
  std::string label = {};  // "worker 2"
  std::string role = {};
  bool is_service = false;
  std::string host = {};                // empty: there is only one
  std::optional<int> wait_status = {};  // as waitpid tells; none: it ran on
  bool was_asked_to_end = false;        // it ended, or would have, because the job did
  std::string loss = {};                // its host was lost, and why
  std::vector<std::string> last_lines = {};
  bool follows_another = false;  // what it wrote says that it ended because another process had failed
};

// "exited with code 3", "was lost with its host: ...".
std::string describe(const ProcessEnd& end);
// Shell's view: the exit code, or 128 and the signal's number.
int exit_code_of(const ProcessEnd& end);

// "worker 1", where the last lines of a process of Muster's own say that it failed or is gone. All processes
// of a job repeat the first reason that the scheduler heard, and end because of it: one that was told may
// well be gone, with the same exit code, before the one that failed.
std::optional<std::string> named_culprit(const std::vector<ProcessEnd>& ends);

// Which of the processes that failed, given in the order in which they ended, brought the job down.
std::size_t cause_among(const std::vector<ProcessEnd>& ends, const std::vector<std::size_t>& failed);

// "how its processes ended: scheduler, worker 0 exited with code 75; worker 1 ran on until asked to end". A
// process that never came to init() is absent to all others; only who started it knows more.
std::string verdicts(const std::vector<ProcessEnd>& ends);

// Processes that failed with the same lines, in the order of the first of each.
struct FailedAlike {
  std::vector<std::string> labels = {};
  std::vector<std::string> lines = {};
};
// Addresses of objects (0x7f...) and the number of the process itself do not make a difference.
void add_failure(std::vector<FailedAlike>& failures, const std::string& label,
                 const std::vector<std::string>& lines);
// "worker 0, worker 1, 14 more".
std::string joined_labels(std::vector<std::string> labels);

// "worker 1 on host b", or "worker 1" where there is only one host.
std::string place_of(std::string_view label, std::string_view host);

}  // namespace muster::launch
