// bench_collectives: the collective calls among processes of this host. It forks the ranks itself, checks
// each answer first, then times the calls on rank 0.
//
//   bench_collectives --ranks 2,4,8 --bytes 64,1024,1048576 --calls barrier,broadcast --transport auto|tcp
//   bench_collectives --ranks 2 --bytes 1048576 --beside
//
// --beside: an all_reduce that is started, a computation that keeps each rank's core busy, and a wait; and
// what each of the two takes by itself. `bytes` is the larger of a rank's two buffers: what an all_gather
// gives, what a reduce_scatter takes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
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
  bool beside = false;
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
    // Of a large one every 101st element, which is none of a whole line.
    const std::size_t stride = count_ > (1 << 20) ? 101 : 1;
    for (std::size_t i = 0; i < count_; i += stride)
      if (const auto wanted = wanted_at(i); wanted && answer_at(i) != *wanted)
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

  float answer_at(std::size_t i) const { return call_ == "broadcast" ? in_[i] : out_[i]; }

  // Nothing where the call does not write.
  std::optional<float> wanted_at(std::size_t i) const {
    const auto sum_at = [&](std::size_t at) {
      float sum = 0;
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) sum += value_of(rank, at);
      return sum;
    };
    const auto from = static_cast<std::uint32_t>(i / block());
    if (call_ == "all_reduce") return sum_at(i);
    if (call_ == "broadcast") return value_of(0, i);
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

constexpr int warm_up_calls = 17;  // in which kinds of stores, and ways to move pieces, are tried

// The peers' program counts the same.
int calls_of(std::size_t bytes, std::size_t ranks) {
  if (bytes <= 64 << 10) return 2000;
  return static_cast<int>(std::clamp<std::size_t>((400 << 20) / (bytes * ranks), 5, 200));
}

void run_rank(const Settings& settings, Communicator& comm) {
  for (const std::string& call : settings.calls)
    for (const std::size_t bytes : call == "barrier" ? std::vector<std::size_t>{0} : settings.bytes) {
      Test test(comm, call, bytes);
      test.check_answer();
      (void)test.times_us(warm_up_calls);
      std::vector<double> times = test.times_us(calls_of(bytes, comm.size()));
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

// ---- Beside a computation ---------------------------------------------------------------------------------

// A core's work that needs no memory: so many passes over what lies in its first cache.
void compute(std::vector<float>& values, int passes) {
  for (int pass = 0; pass < passes; ++pass)
    for (float& value : values) value = value * 0.999F + 0.001F;
}

double median_us(const std::function<void()>& work, Communicator& comm, int rounds) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    if (const auto met = comm.barrier(); !met) die(met.error());
    const auto before = Clock::now();
    work();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

void measure_beside(Communicator& comm, std::size_t bytes) {
  constexpr int rounds = 15;
  muster::collective::AsyncGroup calls(std::shared_ptr<Communicator>(&comm, [](Communicator*) {}));
  std::vector<float> in(bytes / sizeof(float), 1), out(in.size()), values(4096, 1);
  const muster::collective::AsyncGroup::Call reduce = [&](Communicator& group) {
    return group.all_reduce(in.data(), out.data(), in.size(), muster::DType::float32, muster::Reduction::sum);
  };
  const auto call = [&] {
    if (const auto done = calls.run(reduce); !done) die(done.error());
  };
  call();
  const double call_us = median_us(call, comm, rounds);
  // Three times as long as the call, on both ranks.
  double pass_us = median_us([&] { compute(values, 100); }, comm, rounds) / 100;
  if (const auto told = comm.broadcast(&pass_us, sizeof(pass_us), 0); !told) die(told.error());
  double wanted_us = std::max(3 * call_us, 1000.0);
  if (const auto told = comm.broadcast(&wanted_us, sizeof(wanted_us), 0); !told) die(told.error());
  const int passes = static_cast<int>(wanted_us / pass_us);
  const double compute_us = median_us([&] { compute(values, passes); }, comm, rounds);
  const double both_us = median_us(
      [&] {
        const auto under_way = calls.start(reduce);
        compute(values, passes);
        if (const auto done = *under_way->wait(); !done) die(done.error());
      },
      comm, rounds);
  if (comm.rank() != 0) return;
  fmt::print(
      "{{\"program\": \"muster\", \"call\": \"beside\", \"ranks\": {}, \"bytes\": {}, \"call_us\": {:.2f}, "
      "\"compute_us\": {:.2f}, \"both_us\": {:.2f}}}\n",
      comm.size(), bytes, call_us, compute_us, both_us);
  std::fflush(stdout);
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
  app.add_flag("--beside", settings.beside, "an all_reduce beside a computation, in place of the calls");
  CLI11_PARSE(app, argc, argv);
  for (const std::uint32_t ranks : settings.ranks)
    if (!muster::benchmarks::run_ranks(
            {.ranks = ranks, .transport = muster::benchmarks::transport_of(settings.transport)},
            [&](Communicator& comm) {
              if (!settings.beside) return run_rank(settings, comm);
              for (const std::size_t bytes : settings.bytes) measure_beside(comm, bytes);
            }))
      return 1;
  return 0;
}
