#include "muster/launch/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

extern char** environ;

namespace muster::launch {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

struct Streams {
  int input, out, error;  // without an input it is empty
  int kept;               // or -1
};

// The child's side of the fork: only calls that are safe between fork and exec. Returns when exec fails.
void become(char* const* arguments, char* const* environment, const Streams& streams, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // the parent ended before the line above
  const int input = streams.input >= 0 ? streams.input : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(input, STDIN_FILENO);
  ::dup2(streams.out, STDOUT_FILENO);
  ::dup2(streams.error, STDERR_FILENO);
  if (streams.kept >= 0) ::fcntl(streams.kept, F_SETFD, 0);
  for (const int number : {SIGPIPE, SIGTTOU, SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(arguments[0], arguments, environment);
}

// The parent of a process, from "/proc/<pid>/stat": "pid (name) state parent ...". The name may hold
// anything.
pid_t parent_of(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > text.size()) return -1;
  pid_t parent = -1;
  std::from_chars(text.data() + name_end + 4, text.data() + text.size(), parent);
  return parent;
}

std::vector<pid_t> children() {
  std::vector<pid_t> result;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed == std::errc{} && end == name.data() + name.size() && parent_of(entry.path()) == ::getpid())
      result.push_back(pid);
  }
  return result;
}

}  // namespace

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  return Pipe{net::Descriptor(ends[0]), net::Descriptor(ends[1])};
}

void read_some(net::Descriptor& output, const std::function<void(std::string_view)>& give) {
  std::array<char, 64 * 1024> bytes;
  const ssize_t size = ::read(output.get(), bytes.data(), bytes.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0)
    output.reset();
  else
    give({bytes.data(), static_cast<std::size_t>(size)});
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& on_top) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!on_top.contains(std::string(text.substr(0, text.find('='))))) entries.emplace_back(text);
  }
  for (const auto& [name, value] : on_top) entries.push_back(name + '=' + value);
  return entries;
}

Result<ChildProcess> start_process(const ProcessSpec& spec, int input, int kept) {
  MUSTER_TRY(Pipe out, make_pipe());
  MUSTER_TRY(Pipe error, make_pipe());
  MUSTER_TRY(Pipe failure, make_pipe());  // closed by a successful exec, or brings its error number
  const auto environment = merged_environment(spec.environment);
  const auto argument_pointers = pointers(spec.arguments);
  const auto environment_pointers = pointers(environment);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("cannot start another process", errno);
  if (pid == 0) {
    become(argument_pointers.data(), environment_pointers.data(),
           {.input = input, .out = out.write.get(), .error = error.write.get(), .kept = kept}, parent);
    const int number = errno;
    [[maybe_unused]] const ssize_t written = ::write(failure.write.get(), &number, sizeof number);
    ::_exit(127);
  }

  failure.write.reset();
  int number = 0;
  ssize_t size = 0;
  while ((size = ::read(failure.read.get(), &number, sizeof number)) < 0 && errno == EINTR) {
  }
  if (size == sizeof number) {
    ::waitpid(pid, nullptr, 0);
    return fail(Code::not_found,
                fmt::format("cannot start '{}': {}", spec.arguments.front(), std::strerror(number)));
  }
  for (const net::Descriptor* end : {&out.read, &error.read}) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  return ChildProcess{.pid = pid, .out = std::move(out.read), .error = std::move(error.read)};
}

Result<> adopt_orphans() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return fail_errno("cannot become a subreaper", errno);
  return {};
}

bool kill_descendants(Duration timeout, const Clock& clock, const std::vector<pid_t>& spared) {
  const auto doomed = [&spared] {
    std::vector<pid_t> pids = children();
    std::erase_if(pids,
                  [&](pid_t pid) { return std::find(spared.begin(), spared.end(), pid) != spared.end(); });
    return pids;
  };
  sigset_t child_ended, before;
  ::sigemptyset(&child_ended);
  ::sigaddset(&child_ended, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child_ended, &before);
  const TimePoint deadline = clock.now() + timeout;
  bool none_left = false;
  // Only children are killed: their pids are ours until we reap them. Each round adopts the next generation.
  while (!none_left && clock.now() < deadline) {
    for (const pid_t pid : doomed()) ::kill(pid, SIGKILL);
    pid_t reaped = 0;
    while ((reaped = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    none_left = (reaped < 0 && errno == ECHILD) || (!spared.empty() && doomed().empty());
    constexpr timespec round{.tv_sec = 0, .tv_nsec = 50'000'000};
    if (!none_left) ::sigtimedwait(&child_ended, nullptr, &round);
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return none_left;
}

bool catches(pid_t pid, int signal_number) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  constexpr std::string_view key = "SigCgt:";  // a mask in hexadecimal digits, of which bit 0 is signal 1
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key))
      return (std::strtoull(line.c_str() + key.size(), nullptr, 16) >> (signal_number - 1) & 1) != 0;
  return false;
}

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::string describe_exit(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return fmt::format("exited with code {}", WEXITSTATUS(wait_status));
  return fmt::format("was killed by signal {} ({})", WTERMSIG(wait_status),
                     ::strsignal(WTERMSIG(wait_status)));
}

}  // namespace muster::launch
