// Scripts whose steps Muster is to show: a process beside them tells when they never used it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "commands.h"
#include "muster/net/net.h"

namespace muster::app {
namespace {

constexpr std::array forwarded_signals = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2};
pid_t script = -1;  // for the handler

// What a terminal sends (SI_KERNEL) goes to the script as well: it is of the same process group.
void forward(int number, siginfo_t* info, void*) {
  if (info->si_code != SI_KERNEL) ::kill(script, number);
}

void forward_signals() {
  struct sigaction action = {};
  action.sa_sigaction = &forward;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (const int number : forwarded_signals) ::sigaction(number, &action, nullptr);
}

sigset_t forwarded_set() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : forwarded_signals) ::sigaddset(&set, number);
  return set;
}

// An empty file, to which the library adds a byte where the script uses it; gone with this object. Not a
// pipe: the script may run in another PID namespace, and programs before it may close what they inherit.
class UseFile {
 public:
  UseFile() {
    std::error_code error;
    path_ = (std::filesystem::temp_directory_path(error) / "muster-use-XXXXXX").string();
    if (!error) file_.reset(::mkostemp(path_.data(), O_CLOEXEC));
  }
  ~UseFile() {
    if (file_) ::unlink(path_.c_str());
  }
  UseFile(const UseFile&) = delete;
  UseFile& operator=(const UseFile&) = delete;

  bool is_made() const { return static_cast<bool>(file_); }
  const std::string& path() const { return path_; }
  bool has_use() const { return ::lseek(file_.get(), 0, SEEK_END) > 0; }

 private:
  std::string path_;
  net::Descriptor file_;
};

// Ends as the script did, for shells and launchers that look at it.
int end_like(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);  // the script has left one
  ::signal(WTERMSIG(status), SIG_DFL);
  ::raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

}  // namespace

int run_watched(std::string_view command, std::vector<std::string> words, const std::function<void()>& used) {
  auto use = std::make_unique<UseFile>();
  if (!use->is_made()) return become(command, std::move(words));  // no place for it: not watched
  ::setenv("MUSTER_USE_FILE", use->path().c_str(), 1);
  const sigset_t held = forwarded_set();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &held, &before);  // until there is a script to forward them to
  const pid_t parent = ::getpid();
  script = ::fork();
  if (script < 0) return refuse(command, fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (script == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // the parent ended before that
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::_exit(become(command, std::move(words)));
  }
  forward_signals();
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  const int status = wait_for(script);
  const bool has_use = use->has_use();
  use.reset();  // before a signal that ends this process, too
  if (status == 0 && !has_use)
    return refuse(
        command,
        "there is nothing to show: the script came to its end and never used Muster. Does it import muster, "
        "and not another library? A program in C++ calls train::run().",
        1);
  if (has_use && used) used();
  return end_like(status);
}

}  // namespace muster::app
