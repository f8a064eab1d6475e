// bench_collectives: the collective calls among processes of this host. It forks the ranks itself, checks
// each answer first, then times the calls on rank 0.
//
//   bench_collectives --ranks 2,4,8 --bytes 64,1024,1048576 --calls barrier,broadcast --transport auto|tcp
//
// `bytes` is the larger of a rank's two buffers: what an all_gather gives, what a reduce_scatter takes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <vector>

#include "muster/collective/collective.h"
#include "ranks.h"

namespace {

using muster::Communicator;
using muster::Result;
using muster::benchmarks::die;
using Clock = std::chrono::steady_clock;

const std::vector<std::string> all_calls = {"barrier",    "all_reduce",     "broadcast",
                                            "all_gather", "reduce_scatter", "all_to_all"};

struct Settings {
  std::vector<std::uint32_t> ranks = {2, 4, 8};
  std::vector<std::size_t> bytes = {64, 1024, 4096, 64 << 10, 1 << 20, 16 << 20, 102228128};
  std::vector<std::string> calls = all_calls;
  std::string transport = "auto";
};

float value_of(std::uint32_t rank, std::size_t i) { return static_cast<float>((i * 7 + rank * 13) % 1000); }

// One call of one size on one rank.
class Test {
 public:
  Test(Communicator& comm, std::string call, std::size_t bytes)
      : comm_(comm), call_(std::move(call)), ranks_(comm.size()) {
    count_ = std::max<std::size_t>(bytes / sizeof(float) / ranks_, 1) * ranks_;
    in_.resize(count_);
    out_.resize(count_);
    for (std::size_t i = 0; i < count_; ++i) in_[i] = value_of(comm.rank(), i);
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      sent_.emplace_back(std::as_bytes(std::span(in_).subspan(rank * block(), block())));
      places_.emplace_back(std::as_writable_bytes(std::span(out_).subspan(rank * block(), block())));
    }
  }

  void run() {
    if (const Result<> done = make_call(); !done) die(done.error());
  }

  void check_answer() {
    run();
    for (std::size_t i = 0; i < count_; ++i)
      if (const auto wanted = wanted_at(i); wanted && out_[i] != *wanted)
        die({muster::Code::internal, fmt::format("{}: wrong answer at element {}", call_, i)});
  }

  std::vector<double> times_us(int calls) {
    std::vector<double> times;
    if (const auto met = comm_.barrier(); !met) die(met.error());
    auto before = Clock::now();
    for (int i = 0; i < calls; ++i) {
      run();
      const auto now = Clock::now();
      times.push_back(std::chrono::duration<double, std::micro>(now - before).count());
      before = now;
    }
    return times;
  }

 private:
  std::size_t block() const { return count_ / ranks_; }

  Result<> make_call() {
    using muster::DType;
    using muster::Reduction;
    if (call_ == "all_reduce")
      return comm_.all_reduce(in_.data(), out_.data(), count_, DType::float32, Reduction::sum);
    if (call_ == "broadcast") return comm_.broadcast(in_.data(), count_ * sizeof(float), 0);
    if (call_ == "all_gather") return comm_.all_gather(in_.data(), out_.data(), block() * sizeof(float));
    if (call_ == "reduce_scatter")
      return comm_.reduce_scatter(in_.data(), out_.data(), block(), DType::float32, Reduction::sum);
    if (call_ == "all_to_all") return comm_.all_to_all(sent_, places_);
    return comm_.barrier();
  }

  // Nothing where the call does not write.
  std::optional<float> wanted_at(std::size_t i) const {
    const auto sum_at = [&](std::size_t at) {
      float sum = 0;
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) sum += value_of(rank, at);
      return sum;
    };
    const auto from = static_cast<std::uint32_t>(i / block());
    if (call_ == "all_reduce") return sum_at(i);
    if (call_ == "all_gather") return value_of(from, i % block());
    if (call_ == "reduce_scatter" && i < block()) return sum_at(comm_.rank() * block() + i);
    if (call_ == "all_to_all") return value_of(from, comm_.rank() * block() + i % block());
    return {};
  }

  Communicator& comm_;
  std::string call_;
  std::uint32_t ranks_;
  std::size_t count_;
  std::vector<float> in_, out_;
  std::vector<std::span<const std::byte>> sent_;
  std::vector<std::span<std::byte>> places_;
};

constexpr int warm_up_calls = 8;

int calls_of(std::size_t bytes) {
  return bytes <= 64 << 10 ? 2000 : static_cast<int>(std::clamp<std::size_t>((200 << 20) / bytes, 8, 200));
}

void run_rank(const Settings& settings, Communicator& comm) {
  for (const std::string& call : settings.calls)
    for (const std::size_t bytes : call == "barrier" ? std::vector<std::size_t>{0} : settings.bytes) {
      Test test(comm, call, bytes);
      test.check_answer();
      (void)test.times_us(warm_up_calls);
      std::vector<double> times = test.times_us(calls_of(bytes));
      if (comm.rank() != 0) continue;
      const double mean =
          std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
      std::ranges::sort(times);
      fmt::print(
          "{{\"program\": \"muster\", \"call\": \"{}\", \"ranks\": {}, \"bytes\": {}, "
          "\"median_us\": {:.2f}, \"mean_us\": {:.2f}}}\n",
          call, comm.size(), bytes, times[times.size() / 2], mean);
      std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("collective calls among processes of this host; one JSON object a line");
  app.add_option("--ranks", settings.ranks, "numbers of processes")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  app.add_option("--bytes", settings.bytes, "sizes of the larger buffer")->delimiter(',');
  app.add_option("--calls", settings.calls)->delimiter(',')->check(CLI::IsMember(all_calls));
  app.add_option("--transport", settings.transport)->check(CLI::IsMember({"auto", "tcp"}));
  CLI11_PARSE(app, argc, argv);
  for (const std::uint32_t ranks : settings.ranks)
    if (!muster::benchmarks::run_ranks(
            {.ranks = ranks, .transport = muster::benchmarks::transport_of(settings.transport)},
            [&](Communicator& comm) { run_rank(settings, comm); }))
      return 1;
  return 0;
}
