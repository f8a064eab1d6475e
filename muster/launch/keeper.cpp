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

constexpr Duration kill_timeout = std::chrono::seconds(5);

[[noreturn]] void run_child(pid_t keeper, const std::function<int(int)>& work, const sigset_t& mask,
                            const std::string& run_folder) {
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
  if (::getppid() != keeper) {  // nobody is left to do it
    kill_descendants(kill_timeout);
    remove_run_folder(run_folder);
  }
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace

int keep(const std::function<int(int keeper_fd)>& work, const std::string& run_folder) {
  if (const auto adopted = adopt_orphans(); !adopted) {
    fmt::print(stderr, "muster: {}\n", adopted.error().message);
    return 1;
  }
  sigset_t awaited;
  ::sigemptyset(&awaited);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) ::sigaddset(&awaited, number);
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &awaited, &before);

  std::fflush(nullptr);
  const pid_t keeper = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    fmt::print(stderr, "muster: {}\n", fail_errno("cannot start the supervisor", errno).value().message);
    return 1;
  }
  if (child == 0) run_child(keeper, work, before, run_folder);

  int status = 0;
  int passed_on = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    const int number = ::sigwaitinfo(&awaited, nullptr);
    if (number <= 0 || number == SIGCHLD) continue;
    ::kill(child, number);
    passed_on = number;
  }
  const bool all_ended = kill_descendants(kill_timeout);
  remove_run_folder(run_folder);
  if (WIFSIGNALED(status) && WTERMSIG(status) == passed_on)
    fmt::print(stderr, "muster: ended by signal {} ({})\n", passed_on, ::strsignal(passed_on));
  else if (WIFSIGNALED(status))
    fmt::print(
        stderr, "muster: the supervisor {}; {}\n", describe_exit(status),
        all_ended ? "everything it had started was ended" : "some of what it had started does not end");
  return exit_code_of(status);
}

}  // namespace muster::launch
