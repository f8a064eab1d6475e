// bench_all_reduce: all_reduce of float32 among processes of this host. It forks the ranks itself, checks the
// answer first, then times every call on rank 0.
//
//   bench_all_reduce --ranks 2,4,8 --bytes 1024,1048576,102228128 --transport auto|tcp [--json]
//
// One line for each size and number of ranks: minimum, median and mean over the calls, in microseconds.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "muster/collective/collective.h"

namespace {

using muster::collective::Communicator;
using muster::collective::Endpoint;
using muster::collective::Group;
using muster::collective::Listener;
using Clock = std::chrono::steady_clock;

struct Settings {
  std::vector<std::uint32_t> ranks = {2, 4, 8};
  std::vector<std::size_t> bytes = {1024, 1 << 20, 102228128};
  std::string transport = "auto";
  bool json = false;
};

// How the ranks find each other: a board that all of them see.
struct Notice {
  std::uint16_t port;
  char local_name[64];
};
struct Board {
  std::atomic<std::uint32_t> written;
  Notice notices[256];
};

[[noreturn]] void die(const muster::Error& error) {
  fmt::print(stderr, "bench_all_reduce: {}\n", error.message);
  std::_Exit(1);
}

std::unique_ptr<Communicator> connect(Board& board, std::uint32_t rank, std::uint32_t ranks, bool tcp) {
  auto listener = Listener::open("127.0.0.1");
  if (!listener) die(listener.error());
  Notice& notice = board.notices[rank];
  notice.port = listener->port();
  std::strncpy(notice.local_name, listener->local_name().c_str(), sizeof(notice.local_name) - 1);
  board.written.fetch_add(1);
  const auto give_up = Clock::now() + std::chrono::seconds(20);
  while (board.written.load() < ranks) {
    if (Clock::now() > give_up) die({muster::Code::timeout, "not all ranks started"});
    ::usleep(1000);
  }
  Group group{.epoch = 1, .job_id = 1, .rank = rank, .endpoints = {}};
  for (std::uint32_t r = 0; r < ranks; ++r)
    group.endpoints.push_back(Endpoint{.host_key = tcp ? fmt::format("rank {}", r) : "this host",
                                       .address = "127.0.0.1",
                                       .port = board.notices[r].port,
                                       .local_name = board.notices[r].local_name});
  auto connected = Communicator::connect(std::move(group), *std::move(listener),
                                         {.call_timeout = std::chrono::seconds(60)});
  if (!connected) die(connected.error());
  return *std::move(connected);
}

// Integers that a float holds exactly, so that every order of adding gives the same sum.
float value_of(std::uint32_t rank, std::size_t i) { return static_cast<float>((i * 7 + rank * 13) % 1000); }

void check_answer(Communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  const auto done = comm.all_reduce(in.data(), out.data(), in.size(), muster::DType::float32,
                                    muster::collective::Reduction::sum);
  if (!done) die(done.error());
  for (std::size_t i = 0; i < in.size(); ++i) {
    float sum = 0;
    for (std::uint32_t rank = 0; rank < comm.size(); ++rank) sum += value_of(rank, i);
    if (out[i] != sum) die({muster::Code::internal, fmt::format("wrong answer at element {}", i)});
  }
}

constexpr int warm_up_calls = 8;  // more than Muster needs to choose its stores

int calls_of(std::size_t bytes) {
  return bytes <= 64 << 10 ? 4000 : static_cast<int>(std::clamp<std::size_t>((200 << 20) / bytes, 8, 400));
}

void report(const Settings& settings, std::uint32_t ranks, std::size_t bytes, std::vector<double> times_us) {
  double total = 0;
  for (const double each : times_us) total += each;
  std::sort(times_us.begin(), times_us.end());
  const double median = times_us[times_us.size() / 2];
  const double mean = total / static_cast<double>(times_us.size());
  const char* shape =
      settings.json
          ? "{{\"program\": \"muster\", \"transport\": \"{}\", \"ranks\": {}, \"bytes\": {}, "
            "\"min_us\": {:.2f}, \"median_us\": {:.2f}, \"mean_us\": {:.2f}}}\n"
          : "muster {:4} ranks {:2} bytes {:10} min {:11.2f} us median {:11.2f} us mean {:11.2f} us\n";
  fmt::print(fmt::runtime(shape), settings.transport, ranks, bytes, times_us.front(), median, mean);
  std::fflush(stdout);
}

void run_rank(const Settings& settings, Board& board, std::uint32_t rank, std::uint32_t ranks) {
  const auto comm = connect(board, rank, ranks, settings.transport == "tcp");
  for (const std::size_t bytes : settings.bytes) {
    std::vector<float> in(bytes / sizeof(float)), out(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = value_of(rank, i);
    check_answer(*comm, in, out);
    const auto reduce = [&] {
      const auto done = comm->all_reduce(in.data(), out.data(), in.size(), muster::DType::float32,
                                         muster::collective::Reduction::sum);
      if (!done) die(done.error());
    };
    for (int i = 0; i < warm_up_calls; ++i) reduce();
    if (const auto done = comm->barrier(); !done) die(done.error());
    std::vector<double> times_us;
    auto before = Clock::now();
    for (int i = 0; i < calls_of(bytes); ++i) {
      reduce();
      const auto now = Clock::now();
      times_us.push_back(std::chrono::duration<double, std::micro>(now - before).count());
      before = now;
    }
    if (rank == 0) report(settings, ranks, bytes, std::move(times_us));
  }
}

bool run_group(const Settings& settings, std::uint32_t ranks) {
  void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto* board = new (memory) Board{};
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      run_rank(settings, *board, rank, ranks);
      std::_Exit(0);
    }
    children.push_back(child);
  }
  bool sound = true;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    sound = sound && status == 0;
  }
  ::munmap(memory, sizeof(Board));
  return sound;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("all_reduce of float32 among processes of this host");
  app.add_option("--ranks", settings.ranks, "numbers of processes")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  app.add_option("--bytes", settings.bytes, "sizes")->delimiter(',');
  app.add_option("--transport", settings.transport)->check(CLI::IsMember({"auto", "tcp"}));
  app.add_flag("--json", settings.json, "one JSON object a line");
  CLI11_PARSE(app, argc, argv);
  for (const std::uint32_t ranks : settings.ranks)
    if (!run_group(settings, ranks)) return 1;
  return 0;
}
