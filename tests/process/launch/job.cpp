#include "job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace muster::launch::testing {
namespace {

constexpr int patience_ms = 20'000;

net::Descriptor open_process(pid_t pid) {
  return net::Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

bool ends(const net::Descriptor& process) {
  if (!process) return true;  // it had ended before we could look
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ended, 1, patience_ms) == 1;
}

Job::Job(const std::vector<std::string>& commands, Times times) {
  folder_ = ::testing::TempDir() + "launch-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder_);
  if (times.has_lease) {
    EXPECT_EQ(::mkfifo((folder_ + "/lease").c_str(), 0600), 0);
  }
  std::vector<std::string> words = {PROGRAM,
                                    folder_,
                                    std::to_string(times.settle_ms),
                                    std::to_string(times.grace_ms),
                                    std::to_string(times.restarts),
                                    std::to_string(times.restart_delay_ms)};
  words.insert(words.end(), commands.begin(), commands.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  output_ = net::Descriptor(ends[0]);
  const net::Descriptor writable(ends[1]);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed leaves no job behind
    if (times.tail != nullptr) ::setenv("TAIL", times.tail, 1);
    if (times.has_lease) ::setenv("LEASE", "1", 1);
    ::dup2(writable.get(), STDOUT_FILENO);
    ::dup2(writable.get(), STDERR_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(126);
  }
  ended_ = open_process(pid_);
}

Job::~Job() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

bool Job::read_some() {
  pollfd readable{.fd = output_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&readable, 1, patience_ms) != 1) {
    ADD_FAILURE() << "nothing was written for " << patience_ms << " ms; so far:\n" << text_;
    return false;
  }
  std::array<char, 4096> bytes;
  const ssize_t size = ::read(output_.get(), bytes.data(), bytes.size());
  if (size > 0) text_.append(bytes.data(), static_cast<std::size_t>(size));
  return size > 0;
}

std::string Job::line_with(const std::string& text) {
  while (true) {
    for (auto end = text_.find('\n', looked_at_); end != std::string::npos;
         end = text_.find('\n', looked_at_)) {
      const std::string line = text_.substr(looked_at_, end - looked_at_);
      looked_at_ = end + 1;
      if (line.find(text) != std::string::npos) return line;
    }
    if (!read_some()) {
      ADD_FAILURE() << "no line with '" << text << "' in:\n" << text_;
      return {};
    }
  }
}

net::Descriptor Job::process_announced() {
  const std::string line = line_with("pid ");
  return line.empty() ? net::Descriptor{} : open_process(std::stoi(line.substr(line.find("pid ") + 4)));
}

int Job::wait() {
  while (output_ && read_some()) {
  }
  EXPECT_TRUE(ends(ended_)) << "the job does not end; so far:\n" << text_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return -1;
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Job::signal(int number) const { ::kill(pid_, number); }

pid_t Job::supervisor_pid() const {
  const std::string pid = std::to_string(pid_);
  const std::string children = contents("/proc/" + pid + "/task/" + pid + "/children");
  EXPECT_FALSE(children.empty());
  return children.empty() ? -1 : std::stoi(children);
}

void Job::signal_supervisor(int number) const { ::kill(supervisor_pid(), number); }

net::Descriptor Job::supervisor() const { return open_process(supervisor_pid()); }

std::string Job::log(int rank) const {
  return contents(folder_ + "/worker_" + std::to_string(rank) + ".log");
}

void Job::end_elsewhere(const std::string& line) const {
  std::ofstream(folder_ + "/lease") << line << std::endl;
}

bool Job::has_run_folder() const { return std::filesystem::exists(folder_ + "/run"); }

}  // namespace muster::launch::testing
