#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace muster::process_test {

using Clock = std::chrono::steady_clock;

Child::Child(const std::string& program, const Variables& variables) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  std::vector<char*> environment;
  for (std::string& entry : entries) environment.push_back(entry.data());
  environment.push_back(nullptr);
  int to_child[2];
  int from_child[2];
  if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0) std::abort();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(to_child[0], STDIN_FILENO);
    ::dup2(from_child[1], STDOUT_FILENO);
    ::dup2(from_child[1], STDERR_FILENO);
    const char* arguments[] = {program.c_str(), nullptr};
    ::execve(program.c_str(), const_cast<char**>(arguments), environment.data());
    ::_exit(127);
  }
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  ::close(to_child[0]);
  ::close(from_child[1]);
  input_ = to_child[1];
  output_fd_ = from_child[0];
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::exchange(other.pidfd_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_fd_(std::exchange(other.output_fd_, -1)),
      output_(std::move(other.output_)),
      status_(other.status_),
      time_to_end_(other.time_to_end_) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(input_, other.input_);
  std::swap(output_fd_, other.output_fd_);
  std::swap(output_, other.output_);
  std::swap(status_, other.status_);
  std::swap(time_to_end_, other.time_to_end_);
  return *this;
}

Child::~Child() {
  if (pid_ < 0) return;
  if (!status_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {pidfd_, input_, output_fd_}) ::close(fd);
}

void Child::tell(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(input_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
}

void Child::signal(int number) { ::kill(pid_, number); }

// Reads what is there, or waits for it; false at the end of the output or at the deadline.
bool Child::read_some(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  pollfd polled{.fd = output_fd_, .events = POLLIN, .revents = 0};
  if (::poll(&polled, 1, static_cast<int>(std::max(left, 0ms).count())) <= 0) return false;
  char buffer[4096];
  const ssize_t size = ::read(output_fd_, buffer, sizeof buffer);
  if (size <= 0) return false;
  output_.append(buffer, static_cast<std::size_t>(size));
  return true;
}

bool Child::printed(const std::string& text, std::chrono::milliseconds time) {
  const auto deadline = Clock::now() + time;
  while (output_.find(text) == std::string::npos)
    if (!read_some(deadline)) return false;
  return true;
}

std::string Child::after(const std::string& text) {
  if (!printed(text)) return {};
  const auto begin = output_.find(text) + text.size();
  while (output_.find('\n', begin) == std::string::npos)
    if (!read_some(Clock::now() + 10s)) break;
  return output_.substr(begin, output_.find('\n', begin) - begin);
}

std::optional<int> Child::ended_within(std::chrono::milliseconds time) {
  if (status_) return status_;
  const auto start = Clock::now();
  pollfd polled{.fd = pidfd_, .events = POLLIN, .revents = 0};
  if (::poll(&polled, 1, static_cast<int>(time.count())) <= 0) return std::nullopt;
  time_to_end_ = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  ::fcntl(output_fd_, F_SETFL, O_NONBLOCK);  // a child of it may hold the other end
  while (read_some(Clock::now())) {
  }
  return status_;
}

}  // namespace muster::process_test
