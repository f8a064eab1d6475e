#include "muster/launch/runs/repository.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <vector>

#include "muster/launch/dashboard/job_json.h"
#include "muster/launch/process.h"
#include "muster/net/net.h"

namespace muster::launch {
namespace {

using nlohmann::json;

constexpr Duration git_limit = std::chrono::seconds(20);  // of all calls together
constexpr std::size_t answer_bytes_max = std::size_t{8} << 20;
constexpr std::size_t names_max = 200;

struct Answer {
  int exit_code = 0;
  std::string out = {};
  std::string error = {};
  bool is_cut = false;
};

// Appends what can be read now; whether the other side has closed.
bool read_into(std::string& text, int fd, bool& is_cut) {
  std::array<char, 65536> bytes;
  const ssize_t size = ::read(fd, bytes.data(), bytes.size());
  if (size == 0) return true;
  if (size < 0) return errno != EAGAIN && errno != EINTR;
  if (text.size() + static_cast<std::size_t>(size) > answer_bytes_max)
    is_cut = true;
  else
    text.append(bytes.data(), static_cast<std::size_t>(size));
  return false;
}

Result<Answer> read_all(const ChildProcess& child, TimePoint deadline, const Clock& clock) {
  Answer answer;
  bool out_ended = false, error_ended = false;
  while (!out_ended || !error_ended) {
    std::array polled = {pollfd{.fd = out_ended ? -1 : child.out.get(), .events = POLLIN, .revents = 0},
                         pollfd{.fd = error_ended ? -1 : child.error.get(), .events = POLLIN, .revents = 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock.now()).count();
    if (left <= 0) return fail(Code::timeout, "git takes too long");
    ::poll(polled.data(), polled.size(), static_cast<int>(left));
    if (polled[0].revents != 0) out_ended = read_into(answer.out, child.out.get(), answer.is_cut);
    if (polled[1].revents != 0) error_ended = read_into(answer.error, child.error.get(), answer.is_cut);
  }
  return answer;
}

// It only reads: no monitor or external diff that the repository names is started, and no lock is taken.
class Git {
 public:
  Git(std::string folder, const Clock& clock)
      : folder_(std::move(folder)), clock_(clock), deadline_(clock.now() + git_limit) {}

  Result<Answer> ask(const std::vector<std::string>& words) const {
    std::vector<std::string> arguments = {
        "git", "-C", folder_, "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "--no-pager"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    MUSTER_TRY(
        const ChildProcess child,
        start_process(
            {.arguments = std::move(arguments),
             .environment = {{"GIT_OPTIONAL_LOCKS", "0"}, {"GIT_TERMINAL_PROMPT", "0"}, {"LC_ALL", "C"}}}));
    auto answer = read_all(child, deadline_, clock_);
    if (!answer) ::kill(child.pid, SIGKILL);
    int status = 0;
    while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (answer) answer->exit_code = exit_code_of(status);
    return answer;
  }

 private:
  std::string folder_;
  const Clock& clock_;
  TimePoint deadline_;
};

std::string first_line(const std::string& text) { return printable(text.substr(0, text.find('\n'))); }

// Of `git status --porcelain -z`: "XY name", each ended by a zero; of a rename the old name follows.
void add_names(json& made, const std::string& status) {
  json changed = json::array(), untracked = json::array();
  std::istringstream entries(status);
  for (std::string entry; std::getline(entries, entry, '\0');) {
    if (entry.size() < 4) continue;
    json& names = entry.starts_with("??") ? untracked : changed;
    if (names.size() < names_max) names.push_back(printable(entry.substr(3)));
    if (entry.front() == 'R' || entry.front() == 'C') std::getline(entries, entry, '\0');
  }
  made["changed"] = std::move(changed);
  made["untracked"] = std::move(untracked);
}

void write_text(const std::string& path, const std::string& text) {
  const std::string unfinished = path + ".new";
  std::FILE* const file = std::fopen(unfinished.c_str(), "we");
  if (file == nullptr) return;
  const bool is_whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && is_whole) std::rename(unfinished.c_str(), path.c_str());
}

Result<json> examined(const std::string& folder, const std::string& diff_file, const Clock& clock) {
  MUSTER_TRY(const Answer where, Git(folder, clock).ask({"rev-parse", "--show-toplevel"}));
  if (where.exit_code != 0) return json{{"problem", first_line(where.error)}};
  const std::string top = where.out.substr(0, where.out.find('\n'));
  const Git git(top, clock);
  json made = {{"folder", printable(top)}};
  MUSTER_TRY(const Answer commit, git.ask({"rev-parse", "--verify", "-q", "HEAD"}));
  if (commit.exit_code != 0) return json{{"problem", "the repository has no commit"}};
  made["commit"] = first_line(commit.out);
  MUSTER_TRY(const Answer branch, git.ask({"symbolic-ref", "--short", "-q", "HEAD"}));
  if (branch.exit_code == 0) made["branch"] = first_line(branch.out);
  MUSTER_TRY(const Answer status, git.ask({"status", "--porcelain", "-z", "--untracked-files=normal"}));
  add_names(made, status.out);
  MUSTER_TRY(const Answer diff, git.ask({"diff", "HEAD", "--no-ext-diff", "--no-textconv", "--no-color"}));
  if (diff.is_cut) made["problem"] = "the changes are more than 8 MiB, and are not kept";
  if (!diff.is_cut && !diff.out.empty()) write_text(diff_file, diff.out);
  return made;
}

}  // namespace

json examine_repository(const std::string& folder, const std::string& diff_file, const Clock& clock) {
  const auto made = examined(folder, diff_file, clock);
  return made ? *made : json{{"problem", made.error().message}};
}

pid_t begin_repository_record(const std::string& folder, const std::string& run_folder, const Clock& clock) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  const json made = examine_repository(folder, run_folder + "/changes.diff", clock);
  write_text(run_folder + "/repository.json", text_of(made));
  ::_exit(0);
}

}  // namespace muster::launch
