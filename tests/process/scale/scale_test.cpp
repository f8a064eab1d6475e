// A world of many processes, as if they were on many hosts: what each of them opens, and that their sum has
// the bits that it has anywhere.
//
// MUSTER_TEST_RANKS and MUSTER_TEST_HOSTS make it another size.
#include <dirent.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "muster/collective/collective.h"

namespace muster::collective {
namespace {

constexpr std::uint32_t ranks_limit = 4096;
constexpr rlim_t files_limit = 1024;  // what a process may open where nobody has raised it

// What the processes tell each other before they are connected, and the test afterwards.
struct Notice {
  std::uint16_t port;
  char local_name[64];
  std::uint32_t files;
  char error[256];
};
struct Board {
  std::atomic<std::uint32_t> written;
  Notice notices[ranks_limit];
};

std::uint32_t number_of(const char* variable, std::uint32_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::atoi(text));
}

// Whose sum depends on the order in which they are added.
float value_of(std::uint32_t rank, std::size_t i) {
  return std::sqrt(static_cast<float>((i * 2654435761u + rank * 97) % 1'000'003)) - 500.0f;
}

std::uint32_t open_files() {
  DIR* const folder = ::opendir("/proc/self/fd");
  std::uint32_t count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count - 3;  // ".", ".." and the folder itself
}

class Process {
 public:
  Process(Board& board, std::uint32_t rank, std::uint32_t ranks, std::uint32_t hosts)
      : board_(board), rank_(rank), ranks_(ranks), hosts_(hosts) {}

  // Ends as the exit status says.
  int run() {
    const auto done = connect().and_then([this] { return reduce(); });
    if (done) return 0;
    done.error().message.copy(own().error, sizeof(own().error) - 1);
    return 1;
  }

 private:
  Notice& own() { return board_.notices[rank_]; }

  Result<> connect() {
    const rlimit limit{.rlim_cur = files_limit, .rlim_max = files_limit};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    MUSTER_TRY(Listener listener, Listener::open("127.0.0.1"));
    own().port = listener.port();
    listener.local_name().copy(own().local_name, sizeof(own().local_name) - 1);
    ++board_.written;
    const TimePoint give_up = real_clock().now() + std::chrono::seconds(60);
    while (board_.written < ranks_) {
      if (real_clock().now() > give_up) return fail(Code::timeout, "not all processes started");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    Group group{.epoch = 1, .job_id = 7, .rank = rank_, .endpoints = {}};
    for (std::uint32_t rank = 0; rank < ranks_; ++rank)
      group.endpoints.push_back({.host_key = fmt::format("host {}", rank % hosts_),
                                 .address = "127.0.0.1",
                                 .port = board_.notices[rank].port,
                                 .local_name = board_.notices[rank].local_name});
    MUSTER_TRY(comm_, collective::connect(std::move(group), std::move(listener)));
    return {};
  }

  // A small tensor and one of some chunks, each twice, so that one follows the other.
  Result<> reduce() {
    for (const std::size_t count : {std::size_t{700}, std::size_t{60'001}, std::size_t{700}}) {
      std::vector<float> values(count), sum(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = value_of(rank_, i);
      for (std::size_t i = 0; i < count; i += 61) {  // some of them: there are many ranks
        sum[i] = value_of(0, i);
        for (std::uint32_t rank = 1; rank < ranks_; ++rank) sum[i] += value_of(rank, i);
      }
      MUSTER_TRY_VOID(comm_->all_reduce(values.data(), values.data(), count, DType::float32, Reduction::sum));
      for (std::size_t i = 0; i < count; i += 61)
        if (std::memcmp(&values[i], &sum[i], sizeof(float)) != 0)
          return fail(Code::corrupt,
                      fmt::format("element {} of {} is {}, not {}", i, count, values[i], sum[i]));
    }
    own().files = open_files();
    return comm_->barrier();  // all are there when they are counted
  }

  Board& board_;
  const std::uint32_t rank_, ranks_, hosts_;
  std::unique_ptr<Communicator> comm_;
};

// More than this, a few files of the process itself and of the test, grows with nothing.
constexpr std::uint32_t files_beside_lanes = 24;

TEST(Scale, ManyProcessesOfManyHostsOpenFewConnectionsEachAndAddTheSame) {
  const std::uint32_t ranks = std::min(number_of("MUSTER_TEST_RANKS", 256), ranks_limit);
  const std::uint32_t hosts = number_of("MUSTER_TEST_HOSTS", 16);
  void* const memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Board& board = *new (memory) Board{};
  const TimePoint start = real_clock().now();
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) std::_Exit(Process(board, rank, ranks, hosts).run());
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << status;
  }
  const std::chrono::duration<double> took = real_clock().now() - start;
  std::uint32_t most = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    ASSERT_STREQ(board.notices[rank].error, "") << "rank " << rank;
    most = std::max(most, board.notices[rank].files);
  }
  fmt::print("{} processes on {} hosts: at most {} files each, {:.3g} s\n", ranks, hosts, most, took.count());
  EXPECT_LE(most, hosts - 1 + files_beside_lanes);
  ::munmap(memory, sizeof(Board));
}

}  // namespace
}  // namespace muster::collective
