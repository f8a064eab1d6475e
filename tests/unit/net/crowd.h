// Unauthorized peers, and processes that may open few files, for tests of whatever listens.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace muster::net::testing_only {

struct FileLimit {
  rlim_t soft, hard;
};

// What `work` says in a process of its own with this limit; nothing: all is well. That of a test that failed
// in it, too.
inline std::string with_file_limit(FileLimit files, const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const rlimit limit{.rlim_cur = files.soft, .rlim_max = files.hard};
    std::string words = ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? work() : "the limit cannot be set";
    if (testing::Test::HasFailure()) words += " (a test failed in there, see above)";
    [[maybe_unused]] const auto written = ::write(ends[1], words.data(), words.size());
    std::_Exit(0);
  }
  ::close(ends[1]);
  std::string words;
  std::array<char, 4096> bytes;
  for (ssize_t size = 0; (size = ::read(ends[0], bytes.data(), bytes.size())) > 0;)
    words.append(bytes.data(), static_cast<std::size_t>(size));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? words : words + "; it crashed";
}

// Processes that connect so often to a port of this host, say `words` each time, and hold what they have got
// until this is destroyed. Every connection waits in the listener's queue when the constructor returns.
class Crowd {
 public:
  Crowd(std::uint16_t port, int count, const std::string& words = "") {
    for (; count > 0; count -= of_one_process) start(port, std::min(count, of_one_process), words);
  }
  ~Crowd() {
    for (const pid_t process : processes_) {
      ::kill(process, SIGKILL);
      ::waitpid(process, nullptr, 0);
    }
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

 private:
  static constexpr int of_one_process = 50;  // it may open as few files as the one that starts it

  void start(std::uint16_t port, int count, const std::string& words) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const pid_t process = ::fork();
    if (process == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDIN_FILENO);
      ::close_range(STDERR_FILENO + 1, ~0U, 0);
      connect(port, count, words);
      [[maybe_unused]] const auto written = ::write(STDIN_FILENO, "x", 1);
      for (;;) ::pause();
    }
    processes_.push_back(process);
    ::close(ends[1]);
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1) << "the crowd did not come";
    ::close(ends[0]);
  }
  // In a forked child, which may be that of a process with threads: system calls only.
  static void connect(std::uint16_t port, int count, const std::string& words) {
    sockaddr_in target{};
    target.sin_family = AF_INET;
    target.sin_port = htons(port);
    target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < count; ++i) {
      const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
      if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&target), sizeof target) != 0) ::_exit(1);
      [[maybe_unused]] const auto sent = ::send(fd, words.data(), words.size(), MSG_NOSIGNAL);
    }
  }
  std::vector<pid_t> processes_;
};

// All descriptors that this process may still have.
inline std::vector<int> take_all_descriptors() {
  std::vector<int> taken;
  for (int fd = ::dup(STDERR_FILENO); fd >= 0; fd = ::dup(STDERR_FILENO)) taken.push_back(fd);
  return taken;
}

}  // namespace muster::net::testing_only
