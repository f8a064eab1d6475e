// bench_crossing: a message from one process of this host to another, as a placed network sends its values.
// It forks the two processes itself, checks the bytes first, then times round trips: a crossing is half of
// one.
//
//   bench_crossing --bytes 1024,65536,1048576 --transport auto|tcp|tls
//   bench_crossing --bytes 100000000 --fresh     what a survivor gives cannot be faster (recovery.py)
//
// One line for each size: minimum, median and mean over the crossings, in microseconds.
#include <fmt/format.h>
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "muster/collective/collective.h"
#include "ranks.h"

namespace {

using muster::Communicator;
using muster::benchmarks::die;
using Clock = std::chrono::steady_clock;

struct Settings {
  std::vector<std::size_t> bytes = {1 << 10, 64 << 10, 1 << 20};
  std::string transport = "auto";
  bool fresh = false;
  bool json = false;
};

// On large pages, as train::SnapshotMemory is.
class Memory {
 public:
  explicit Memory(std::size_t size_bytes) : data_(new (alignment) std::byte[size_bytes], size_bytes) {
    ::madvise(data_.data(), data_.size(), MADV_HUGEPAGE);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::operator delete[](data_.data(), alignment); }
  std::span<std::byte> bytes() const { return data_; }

 private:
  static constexpr std::align_val_t alignment{std::size_t{2} << 20};
  std::span<std::byte> data_;
};

// One size on one of the two ranks. Rank 0 sends its bytes, rank 1 sends back what it got.
class Test {
 public:
  Test(Communicator& comm, std::size_t size_bytes, bool is_fresh)
      : comm_(comm), is_fresh_(is_fresh), sent_(size_bytes), received_(std::in_place, size_bytes) {}

  void check_answer() {
    for (unsigned round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < sent_.size(); ++i)
        sent_[i] = static_cast<std::byte>(i * 7 + i / 251 + round);
      go_and_return();
      if (comm_.rank() == 0 && !std::ranges::equal(received_->bytes(), sent_))
        die({muster::Code::internal, "other bytes came back"});
    }
  }

  std::vector<double> times_us(int rounds) {
    std::vector<double> times;
    if (const auto done = comm_.barrier(); !done) die(done.error());
    auto before = Clock::now();
    for (int i = 0; i < rounds; ++i) {
      go_and_return();
      const auto now = Clock::now();
      times.push_back(std::chrono::duration<double, std::micro>(now - before).count() / 2);
      before = now;
    }
    return times;
  }

 private:
  void go_and_return() {
    if (comm_.rank() == 0) {
      send(sent_);
      receive();
    } else {
      receive();
      send(received_->bytes());
    }
  }
  void send(std::span<const std::byte> bytes) {
    if (const auto done = comm_.send(1 - comm_.rank(), {&bytes, 1}); !done) die(done.error());
  }
  void receive() {
    if (is_fresh_) received_.emplace(sent_.size());
    const std::span<std::byte> bytes = received_->bytes();
    if (const auto done = comm_.receive(1 - comm_.rank(), {&bytes, 1}); !done) die(done.error());
  }

  Communicator& comm_;
  const bool is_fresh_;
  std::vector<std::byte> sent_;
  std::optional<Memory> received_;
};

constexpr int warm_up_rounds = 32;  // more than Muster needs to choose its stores

int rounds_of(std::size_t bytes) {
  return bytes <= 64 << 10 ? 4000 : static_cast<int>(std::clamp<std::size_t>((400 << 20) / bytes, 8, 400));
}

void report(const Settings& settings, std::size_t bytes, std::vector<double> times_us) {
  const double total = std::accumulate(times_us.begin(), times_us.end(), 0.0);
  std::sort(times_us.begin(), times_us.end());
  const double median = times_us[times_us.size() / 2];
  const double mean = total / static_cast<double>(times_us.size());
  const char* shape =
      settings.json ? "{{\"program\": \"muster\", \"transport\": \"{}\", \"bytes\": {}, \"min_us\": {:.2f}, "
                      "\"median_us\": {:.2f}, \"mean_us\": {:.2f}}}\n"
                    : "muster {:4} bytes {:10} min {:11.2f} us median {:11.2f} us mean {:11.2f} us\n";
  fmt::print(fmt::runtime(shape), settings.transport, bytes, times_us.front(), median, mean);
  std::fflush(stdout);
}

void run_rank(const Settings& settings, Communicator& comm) {
  for (const std::size_t bytes : settings.bytes) {
    Test test(comm, bytes, settings.fresh);
    test.check_answer();
    (void)test.times_us(warm_up_rounds);
    std::vector<double> times_us = test.times_us(rounds_of(bytes));
    if (comm.rank() == 0) report(settings, bytes, std::move(times_us));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("messages between two processes of this host");
  app.add_option("--bytes", settings.bytes, "sizes")->delimiter(',');
  app.add_option("--transport", settings.transport)->check(CLI::IsMember({"auto", "tcp", "tls"}));
  app.add_flag("--fresh", settings.fresh, "what is received lies in new memory each time");
  app.add_flag("--json", settings.json, "one JSON object a line");
  CLI11_PARSE(app, argc, argv);
  const auto transport = muster::benchmarks::transport_of(settings.transport);
  return muster::benchmarks::run_ranks({.ranks = 2, .transport = transport},
                                       [&](Communicator& comm) { run_rank(settings, comm); })
             ? 0
             : 1;
}
