#include "muster/launch/keeper.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "muster/launch/process.h"
#include "muster/launch/run_folder.h"

namespace muster::launch {
namespace {

[[noreturn]] void run_child(pid_t keeper, const std::function<int(int)>& work, const sigset_t& mask,
                            const KeeperOptions& options) {
  // A group of its own: what is sent to the group of the keeper, kill -9 included, does not reach both.
  ::setpgid(0, 0);
  const int keeper_fd = static_cast<int>(::syscall(SYS_pidfd_open, keeper, 0));
  if (keeper_fd < 0) {
    const auto failed = fail_errno("cannot watch the process that started this one (pidfd_open)", errno);
    fmt::print(stderr, "muster: {}\n", failed.value().message);
    ::_exit(1);
  }
  if (::getppid() != keeper) ::_exit(1);  // it is gone already
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  const int code = work(keeper_fd);
  if (::getppid() != keeper) {  // no process is left to do it
    kill_descendants(kill_timeout, options.clock);
    remove_run_folder(options.run_folder);
  }
  std::fflush(nullptr);
  ::_exit(code);
}

// A shell's Ctrl-Z: the shell gets its terminal back. What runs on several hosts cannot be halted together,
// and each would take the others for lost.
void stop_as_asked(const sigset_t& stop) {
  fmt::print(stderr, "muster: Ctrl-Z stops no job: it goes on, and fg brings this terminal back to it\n");
  ::raise(SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // here it stops, unless no shell could let it go on
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
}

// Waits for the child's end; returns the last signal that was passed on to it, or 0.
int wait_for(pid_t child, const sigset_t& awaited, const KeeperOptions& options, int& status) {
  sigset_t stop;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGTSTP);
  int passed_on = 0;
  std::optional<TimePoint> kill_at;
  while (true) {
    const pid_t changed = ::waitpid(child, &status, WNOHANG | WUNTRACED | WCONTINUED);
    const bool is_there = changed == 0 || WIFSTOPPED(status) || WIFCONTINUED(status);
    if (changed < 0 || !is_there) return passed_on;
    if (changed != 0) {
      kill_at.reset();
      if (WIFSTOPPED(status) && options.stopped_max) kill_at = options.clock.now() + *options.stopped_max;
      continue;
    }
    const Duration left = kill_at ? *kill_at - options.clock.now() : std::chrono::hours(1);
    if (left <= Duration::zero()) {
      fmt::print(stderr, "muster: the supervisor has stood still for {} s, and is ended\n",
                 *options.stopped_max / std::chrono::seconds(1));
      ::kill(child, SIGKILL);
      kill_at.reset();
      continue;
    }
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(left);
    const timespec time{.tv_sec = static_cast<std::time_t>(seconds.count()), .tv_nsec = 0};
    const int number = ::sigtimedwait(&awaited, nullptr, &time);
    if (number == SIGTSTP) stop_as_asked(stop);
    if (number <= 0 || number == SIGCHLD || number == SIGTSTP) continue;
    ::kill(child, number);
    passed_on = number;
  }
}

}  // namespace

int keep(const std::function<int(int keeper_fd)>& work, const KeeperOptions& options) {
  if (const auto adopted = adopt_orphans(); !adopted) {
    fmt::print(stderr, "muster: {}\n", adopted.error().message);
    return 1;
  }
  sigset_t awaited;
  ::sigemptyset(&awaited);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCHLD}) ::sigaddset(&awaited, number);
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &awaited, &before);

  std::fflush(nullptr);
  const pid_t keeper = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    fmt::print(stderr, "muster: {}\n", fail_errno("cannot start the supervisor", errno).value().message);
    return 1;
  }
  if (child == 0) run_child(keeper, work, before, options);

  int status = 0;
  const int passed_on = wait_for(child, awaited, options, status);
  const bool all_ended = kill_descendants(kill_timeout, options.clock);
  remove_run_folder(options.run_folder);
  if (WIFSIGNALED(status) && WTERMSIG(status) == passed_on)
    fmt::print(stderr, "muster: ended by signal {} ({})\n", passed_on, ::strsignal(passed_on));
  else if (WIFSIGNALED(status))
    fmt::print(
        stderr, "muster: the supervisor {}; {}\n", describe_exit(status),
        all_ended ? "everything it had started was ended" : "some of what it had started does not end");
  return exit_code_of(status);
}

}  // namespace muster::launch
