// An agent and its launcher, which is the test: it speaks the frames itself.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "job.h"
#include "muster/launch/hosts/agent_messages.h"

namespace muster::launch::testing {
namespace {

using ::testing::AllOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int patience_ms = 20'000;

net::Descriptor open_process(pid_t pid) {
  return net::Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

pid_t child_of(pid_t pid) {
  std::ifstream children("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  pid_t child = -1;
  children >> child;
  return child;
}

class AgentProcess : public ::testing::Test {
 protected:
  void SetUp() override { begin(60'000); }
  void TearDown() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  void begin(int lease_ms) {
    folder_ = ::testing::TempDir() + "agent-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
    std::array<int, 2> in{}, out{};
    ASSERT_EQ(::pipe2(in.data(), O_CLOEXEC) | ::pipe2(out.data(), O_CLOEXEC), 0);
    to_ = net::Descriptor(in[1]);
    from_ = net::Descriptor(out[0]);
    const net::Descriptor input(in[0]), output(out[1]);
    const std::string lease = std::to_string(lease_ms);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(input.get(), STDIN_FILENO);
      ::dup2(output.get(), STDOUT_FILENO);
      ::execl(PROGRAM, PROGRAM, "agent", folder_.c_str(), lease.c_str(), nullptr);
      ::_exit(126);
    }
    std::string line(agent::greeting.size(), ' ');
    ASSERT_EQ(::read(from_.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
    ASSERT_EQ(line, agent::greeting);
    ASSERT_EQ(next<agent::Hello>().run_folder, folder_);
  }

  void send(const agent::Message& message) const {
    const std::string bytes = encode(message);
    ASSERT_EQ(::write(to_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

  // The next message, which is of this kind; heartbeats come at any time.
  template <class T>
  T next() {
    while (true) {
      auto frame = decoder_.next();
      if (!frame) break;
      if (*frame) {
        auto message = agent::decode(**frame);
        if (message && std::holds_alternative<T>(*message)) return std::get<T>(*std::move(message));
        if (message && std::holds_alternative<agent::Heartbeat>(*message)) continue;
        ADD_FAILURE() << "a message of another kind: " << (message ? message->index() : 99);
        return {};
      }
      pollfd readable{.fd = from_.get(), .events = POLLIN, .revents = 0};
      std::array<std::byte, 4096> bytes;
      if (::poll(&readable, 1, patience_ms) != 1) break;
      const ssize_t size = ::read(from_.get(), bytes.data(), bytes.size());
      if (size <= 0) break;
      decoder_.append(std::span(bytes).first(static_cast<std::size_t>(size)));
    }
    ADD_FAILURE() << "no message comes";
    return {};
  }

  // Runs a shell command as process 0; the descriptor becomes readable when it has ended.
  net::Descriptor start(const std::string& command) {
    send(agent::Start{.arguments = {"sh", "-c", command}});
    return open_process(static_cast<pid_t>(next<agent::Started>().pid));
  }

  // A process that has left its session and its parent; the agent's process 0.
  net::Descriptor start_daemon() {
    start("setsid sh -c 'echo $$; exec sleep 1000' & sleep 1000");
    return open_process(std::stoi(next<agent::Output>().bytes));
  }

  int wait() {
    EXPECT_TRUE(ends(open_process(pid_)));
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  static inline int count = 0;
  std::string folder_;
  pid_t pid_ = -1;
  net::Descriptor to_, from_;
  net::FrameDecoder decoder_{agent::payload_size_max};
};

TEST_F(AgentProcess, StartsWhatItIsToldAndBringsBackWhatItWritesAndHowItEnds) {
  send(agent::Setup{.folder = "/"});
  send(agent::MakeFile{.path = folder_ + "/secret", .contents = "sesame"});
  send(agent::Start{.process = 5,
                    .arguments = {"sh", "-c", "pwd; echo $NAME >&2; cat $FILE; exit 3"},
                    .environment = {{"NAME", "a b"}, {"FILE", folder_ + "/secret"}}});
  EXPECT_THAT(next<agent::Started>().process, Eq(5));
  std::string out, error;
  while (out.size() + error.size() < 12) {
    const auto output = next<agent::Output>();
    if (output.bytes.empty()) break;
    (output.stream == Stream::out ? out : error) += output.bytes;
  }
  EXPECT_THAT(out, Eq("/\nsesame"));
  EXPECT_THAT(error, Eq("a b\n"));
  EXPECT_THAT(next<agent::Ended>(), Eq(agent::Ended{.process = 5, .wait_status = 3 << 8}));
  send(agent::End{});
  EXPECT_TRUE(next<agent::Gone>().none_left);
  EXPECT_THAT(wait(), Eq(0));
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

// Whoever lost the descriptor on the way, as programs between do, finds it by its name.
TEST_F(AgentProcess, KeepsASecretInMemoryAndItsProcessesReadItByName) {
  const std::string path = folder_ + "/token";
  send(agent::MakeFile{.path = path, .contents = "sesame\n", .is_secret = true});
  const auto process = start("test -L " + path + " && stat -L -c %a " + path + " && cat " + path);
  EXPECT_TRUE(ends(process));
  std::string out;
  while (out.size() < 11) out += next<agent::Output>().bytes;
  EXPECT_THAT(out, Eq("600\nsesame\n"));
  EXPECT_THAT(std::filesystem::read_symlink(path).string(), StartsWith("/proc/"));
}

TEST_F(AgentProcess, SignalsAProcessAndItsGroup) {
  const auto process = start("sleep 1000 & wait");
  send(agent::Signal{.process = 0, .number = SIGTERM});
  EXPECT_THAT(next<agent::Ended>().wait_status, Eq(static_cast<std::uint32_t>(SIGTERM)));
  EXPECT_TRUE(ends(process));
}

TEST_F(AgentProcess, ReservesPorts) {
  send(agent::Reserve{.count = 3, .min = 5000, .max = 10000});
  const auto ports = next<agent::Ports>();
  EXPECT_THAT(ports.numbers, ::testing::SizeIs(3));
  EXPECT_THAT(ports.numbers, ::testing::Each(AllOf(::testing::Ge(5000), ::testing::Le(10000))));
}

TEST_F(AgentProcess, SaysWhatCannotBeStarted) {
  send(agent::Start{.process = 1, .arguments = {"/no/such/program"}});
  EXPECT_THAT(next<agent::StartFailed>().message,
              Eq("cannot start '/no/such/program': No such file or directory"));
}

TEST_F(AgentProcess, GivesUpWhereTheFolderIsMissing) {
  const auto daemon = start_daemon();
  send(agent::Setup{.folder = "/no/such/folder"});
  EXPECT_THAT(next<agent::Failed>().message,
              StartsWith("the job's folder '/no/such/folder' cannot be entered"));
  EXPECT_THAT(wait(), Eq(69));
  EXPECT_TRUE(ends(daemon));
}

TEST_F(AgentProcess, RefusesWhatIsNoFrame) {
  const std::string nonsense(64, 'x');
  ASSERT_EQ(::write(to_.get(), nonsense.data(), nonsense.size()), 64);
  EXPECT_THAT(next<agent::Failed>().message, HasSubstr("what the launcher said"));
  EXPECT_THAT(wait(), Eq(69));
}

// ---- The lease --------------------------------------------------------------------------------------------

TEST_F(AgentProcess, EndsEverythingWhenTheConnectionEnds) {
  const auto daemon = start_daemon();
  to_.reset();
  EXPECT_THAT(wait(), Eq(69));
  EXPECT_TRUE(ends(daemon));
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(AgentProcess, EndsEverythingWhenNobodyListens) {
  const auto daemon = start_daemon();
  from_.reset();
  EXPECT_THAT(wait(), Eq(69));
  EXPECT_TRUE(ends(daemon));
}

TEST_F(AgentProcess, EndsEverythingWhenItIsKilled) {
  const auto daemon = start_daemon();
  ::kill(pid_, SIGKILL);
  EXPECT_THAT(wait(), Eq(128 + SIGKILL));
  EXPECT_TRUE(ends(daemon));
}

TEST_F(AgentProcess, EndsEverythingWhenTheLauncherIsSilent) {
  TearDown();
  decoder_ = net::FrameDecoder(agent::payload_size_max);
  begin(1500);
  const auto daemon = start_daemon();
  EXPECT_THAT(wait(), Eq(69));
  EXPECT_TRUE(ends(daemon));
}

TEST_F(AgentProcess, IsHeardThoughNothingHappens) {
  const TimePoint begin = real_clock().now();
  next<agent::Heartbeat>();
  next<agent::Heartbeat>();
  EXPECT_LT(real_clock().now() - begin, 2 * 2 * agent::heartbeat_interval);
}

// Nobody is left to take orders, and its processes would run for nobody.
TEST_F(AgentProcess, EndsEverythingWhenItStandsStill) {
  TearDown();
  decoder_ = net::FrameDecoder(agent::payload_size_max);
  begin(1500);
  const auto daemon = start_daemon();
  const auto agent = open_process(child_of(pid_));
  const TimePoint begin = real_clock().now();
  ASSERT_EQ(::syscall(SYS_pidfd_send_signal, agent.get(), SIGSTOP, nullptr, 0), 0);
  EXPECT_THAT(wait(), Eq(128 + SIGKILL));
  EXPECT_TRUE(ends(daemon));
  EXPECT_LT(real_clock().now() - begin, 2 * std::chrono::milliseconds(1500) + std::chrono::seconds(1));
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

}  // namespace
}  // namespace muster::launch::testing
