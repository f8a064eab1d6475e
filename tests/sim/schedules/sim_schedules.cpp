// ./dev sim: runs simulated schedules (tests/sim/cluster/schedules.h) on all cores, says which seed broke
// what.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>

#include "muster/base/base.h"
#include "schedules.h"

namespace muster::cluster::sim {
namespace {

struct Options {
  std::uint64_t schedules = 1'000'000;
  std::uint64_t seed = 0;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
};

class Runs {
 public:
  explicit Runs(const Options& options) : options_(options) {}

  bool all() {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < options_.jobs; ++i) threads.emplace_back([this] { some(); });
    for (std::thread& thread : threads) thread.join();
    fmt::print("{} schedules from seed {}: {} formed, {} ended well, {} epochs, {} broke a promise\n",
               done_.load(), options_.seed, formed_.load(), ended_well_.load(), epochs_.load(),
               broken_.load());
    return broken_ == 0;
  }

 private:
  static constexpr std::uint64_t shown_max = 20;

  void say_progress() const {
    fmt::print("{} of {}\n", done_.load(), options_.schedules);
    std::fflush(stdout);
  }

  void some() {
    for (std::uint64_t i = next_++; i < options_.schedules && broken_ < shown_max; i = next_++) {
      const std::uint64_t seed = options_.seed + i;
      const ScheduleResult result = run_schedule(seed);
      formed_ += result.formed;
      ended_well_ += result.ended_well;
      epochs_ += result.epochs;
      if (++done_ % 100'000 == 0) say_progress();
      if (result.broken.empty()) continue;
      ++broken_;
      const std::lock_guard lock(printing_);
      for (const std::string& what : result.broken) fmt::print("seed {}: {}\n", seed, what);
      fmt::print("again: ./dev sim --seed {} --schedules 1\n", seed);
      std::fflush(stdout);
    }
  }

  const Options options_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> formed_{0};
  std::atomic<std::uint64_t> ended_well_{0};
  std::atomic<std::uint64_t> epochs_{0};
  std::atomic<std::uint64_t> broken_{0};
  std::mutex printing_;
};

}  // namespace
}  // namespace muster::cluster::sim

int main(int count, char** arguments) {
  muster::cluster::sim::Options options;
  options.seed = muster::entropy() >> 1;
  CLI::App app{
      "Runs small jobs in which everything goes wrong that a seed says, and checks what was promised"};
  app.add_option("--schedules", options.schedules, "how many")->capture_default_str();
  app.add_option("--seed", options.seed, "of the first; the others count up from it (drawn when absent)");
  app.add_option("--jobs", options.jobs, "threads")->capture_default_str()->check(CLI::Range(1, 1024));
  CLI11_PARSE(app, count, arguments);
  return muster::cluster::sim::Runs(options).all() ? 0 : 1;
}
