#include "muster/launch/kubernetes/sidecar.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

namespace muster::launch::kubernetes {
namespace {

constexpr int exit_code_not_found = 127;  // as a shell has it

[[noreturn]] void execute(const std::vector<std::string>& command, const sigset_t& usual, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(128 + SIGKILL);
  ::setpgid(0, 0);  // a terminal's Ctrl-C is for the parent
  ::sigprocmask(SIG_SETMASK, &usual, nullptr);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  const std::string message =
      fmt::format("muster sidecar: cannot start '{}': {}\n", command.front(), std::strerror(errno));
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message.data(), message.size());
  ::_exit(exit_code_not_found);
}

// The end of `child`, when it is among those that have ended.
std::optional<int> reap(pid_t child) {
  std::optional<int> exit_code;
  int status = 0;
  for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)
    if (ended == child) exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return exit_code;
}

}  // namespace

Result<int> run_sidecar(const std::vector<std::string>& command) {
  sigset_t handled;
  sigset_t usual;
  ::sigemptyset(&handled);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT}) ::sigaddset(&handled, number);
  ::sigprocmask(SIG_BLOCK, &handled, &usual);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return fail_errno("cannot start a process", errno);
  if (child == 0) execute(command, usual, parent);

  bool is_told = false;
  bool has_ended = false;
  while (!(is_told && has_ended)) {  // until Kubernetes or the user loses patience, and kills
    siginfo_t signal{};
    if (::sigwaitinfo(&handled, &signal) < 0) continue;
    if (signal.si_signo != SIGCHLD) is_told = true;
    const auto exit_code = reap(child);
    if (exit_code.value_or(0) != 0) return *exit_code;
    has_ended = has_ended || exit_code.has_value();
  }
  return 0;
}

}  // namespace muster::launch::kubernetes
