// bench_all_reduce: all_reduce of float32 among processes of this host. It forks the ranks itself, checks the
// answer first, then times every call on rank 0.
//
//   bench_all_reduce --ranks 2,4,8 --bytes 1024,1048576,102228128 --transport auto|tcp|tls|ucx
//   [--ranks-of-host 2] [--shared] [--touch]
//
// One line for each size and number of ranks: minimum, median and mean over the calls, in microseconds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "muster/collective/collective.h"
#include "ranks.h"

namespace {

using muster::Communicator;
using muster::benchmarks::die;
using Clock = std::chrono::steady_clock;

struct Settings {
  std::vector<std::uint32_t> ranks = {2, 4, 8};
  std::vector<std::size_t> bytes = {1024, 1 << 20, 102228128};
  std::string transport = "auto";
  std::uint32_t ranks_of_host = 0;
  bool shared = false;
  bool touch = false;
  bool json = false;
};

// Integers that a float holds exactly, so that every order of adding gives the same sum.
float value_of(std::uint32_t rank, std::size_t i) { return static_cast<float>((i * 7 + rank * 13) % 1000); }

// `count` floats, of shared memory if that is asked for.
std::shared_ptr<float> floats(Communicator& comm, std::size_t count, bool shared) {
  if (!shared) return {new float[count], [](float* data) { delete[] data; }};
  auto made = comm.shared_buffer(count * sizeof(float));
  if (!made) die(made.error());
  return {*made, reinterpret_cast<float*>(made->get())};
}

// One size on one rank.
class Test {
 public:
  Test(Communicator& comm, std::size_t bytes, const Settings& settings)
      : comm_(comm),
        count_(bytes / sizeof(float)),
        touch_(settings.touch),
        in_(floats(comm, count_, settings.shared)),
        out_(floats(comm, count_, settings.shared)) {
    std::fill_n(out_.get(), count_, 0.0f);
    fill();
  }

  void check_answer() {
    reduce();
    for (std::size_t i = 0; i < count_; ++i) {
      float sum = 0;
      for (std::uint32_t rank = 0; rank < comm_.size(); ++rank) sum += value_of(rank, i);
      if (out_.get()[i] != sum) die({muster::Code::internal, fmt::format("wrong answer at element {}", i)});
    }
  }

  // One after another, as Open MPI's are timed; or each with its input written before and its output read
  // after it, as a training step does, which is not counted.
  std::vector<double> times_us(int calls) {
    std::vector<double> times;
    wait_for_all();
    auto before = Clock::now();
    for (int i = 0; i < calls; ++i) {
      if (touch_) {
        fill();
        wait_for_all();
        before = Clock::now();
      }
      reduce();
      const auto now = Clock::now();
      times.push_back(std::chrono::duration<double, std::micro>(now - before).count());
      before = now;
      if (touch_) read();
    }
    return times;
  }

 private:
  void reduce() {
    const auto done =
        comm_.all_reduce(in_.get(), out_.get(), count_, muster::DType::float32, muster::Reduction::sum);
    if (!done) die(done.error());
  }
  void wait_for_all() {
    if (const auto done = comm_.barrier(); !done) die(done.error());
  }
  void fill() {
    for (std::size_t i = 0; i < count_; ++i) in_.get()[i] = value_of(comm_.rank(), i);
  }
  void read() { sum_ = std::accumulate(out_.get(), out_.get() + count_, sum_); }

  Communicator& comm_;
  std::size_t count_;
  bool touch_;
  std::shared_ptr<float> in_;
  std::shared_ptr<float> out_;
  volatile float sum_ = 0;
};

constexpr int warm_up_calls = 8;  // as many as Muster needs to choose its stores

int calls_of(std::size_t bytes) {
  return bytes <= 64 << 10 ? 4000 : static_cast<int>(std::clamp<std::size_t>((200 << 20) / bytes, 8, 400));
}

void report(const Settings& settings, std::uint32_t ranks, std::size_t bytes, std::vector<double> times_us) {
  const double total = std::accumulate(times_us.begin(), times_us.end(), 0.0);
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

void run_rank(const Settings& settings, Communicator& comm) {
  for (const std::size_t bytes : settings.bytes) {
    Test test(comm, bytes, settings);
    test.check_answer();
    (void)test.times_us(warm_up_calls);
    std::vector<double> times_us = test.times_us(calls_of(bytes));
    if (comm.rank() == 0) report(settings, comm.size(), bytes, std::move(times_us));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("all_reduce of float32 among processes of this host");
  app.add_option("--ranks", settings.ranks, "numbers of processes")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  app.add_option("--bytes", settings.bytes, "sizes")->delimiter(',');
  app.add_option("--transport", settings.transport)->check(CLI::IsMember({"auto", "tcp", "tls", "ucx"}));
  app.add_option("--ranks-of-host", settings.ranks_of_host, "as if so many ranks shared a host");
  app.add_flag("--shared", settings.shared, "in buffers that the ranks of a host share");
  app.add_flag("--touch", settings.touch, "write each input anew and read each output, not counted");
  app.add_flag("--json", settings.json, "one JSON object a line");
  CLI11_PARSE(app, argc, argv);
  for (const std::uint32_t ranks : settings.ranks)
    if (!muster::benchmarks::run_ranks({.ranks = ranks,
                                        .transport = muster::benchmarks::transport_of(settings.transport),
                                        .ranks_of_host = settings.ranks_of_host},
                                       [&](Communicator& comm) { run_rank(settings, comm); }))
      return 1;
  return 0;
}
