#include "follow.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <string>

#include "commands.h"

namespace muster::app {
namespace {

constexpr timespec pause{.tv_sec = 2, .tv_nsec = 0};
// A scheduler that has died is started again within this time, where the job recovers.
constexpr Duration restart_timeout = std::chrono::seconds(35);
constexpr const char* clear_terminal = "\033[H\033[2J";

class Screen {
 public:
  explicit Screen(bool is_json) : is_json_(is_json), is_terminal_(!is_json && ::isatty(STDOUT_FILENO) == 1) {}

  void show(const launch::JobStatus& job) {
    if (is_json_) return print(launch::status_json(job, false));
    if (is_terminal_) return print(clear_terminal + launch::status_text(job));
    if (const std::string line = launch::status_line(job); line != said_) {
      said_ = line;
      print(line + '\n');
    }
  }
  void end(const std::string& line) {
    if (!is_json_) print(line + '\n');
  }

 private:
  static void print(const std::string& text) {
    fmt::print("{}", text);
    std::fflush(stdout);
  }

  bool is_json_;
  bool is_terminal_;
  std::string said_;
};

}  // namespace

int watch_status(const net::HostPort& scheduler, const std::shared_ptr<const net::Security>& security,
                 bool is_json) {
  Screen screen(is_json);
  std::optional<launch::JobStatus> last;
  TimePoint heard_at{};
  while (true) {
    const auto job = launch::ask_status(scheduler, security, real_clock());
    const TimePoint now = real_clock().now();
    if (!job && !last) return refuse("status", job.error().message, 1);
    if (job && last && job->job_id != last->job_id) {
      screen.end(fmt::format("the job has ended; another one, {:016x}, runs there now", job->job_id));
      return 0;
    }
    if (job) {
      screen.show(*job);
      last = *job;
      heard_at = now;
    } else if (!last->status.recovers || now - heard_at > restart_timeout) {
      screen.end("the job has ended: its scheduler does not answer any more");
      return 0;
    }
    if (job && launch::is_over(*job)) {
      screen.end("the job has ended");
      return 0;
    }
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace muster::app
