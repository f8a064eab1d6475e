// ./dev sim: runs simulated schedules (schedules.h in tests/sim/cluster, tests/sim/storage and
// tests/sim/server) on all cores, says which seed broke what.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/base.h"
#include "tests/sim/cluster/schedules.h"
#include "tests/sim/server/schedules.h"
#include "tests/sim/storage/schedules.h"

namespace muster::sim {
namespace {

struct Options {
  std::uint64_t schedules = 1'000'000;
  std::uint64_t seed = 0;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  std::string only = {};
  std::uint64_t broken_max = 20;
};

struct Outcome {
  std::vector<std::string> broken = {};
  std::vector<std::uint64_t> counts = {};
};

// One kind of jobs.
struct Kind {
  std::string name;
  std::vector<std::string> counted;  // in each outcome
  std::function<Outcome(std::uint64_t seed)> run;
  std::function<std::vector<std::string>(std::uint64_t seed)> explain = {};  // of one that broke a promise
};

Outcome run_cluster(std::uint64_t seed) {
  cluster::sim::ScheduleResult result = cluster::sim::run_schedule(seed);
  return {std::move(result.broken), {result.formed, result.ended_well, result.epochs}};
}

Outcome run_storage(std::uint64_t seed) {
  train::sim::RunResult result = train::sim::run_schedule(seed);
  return {std::move(result.broken), {result.ended_well, result.was_refused, result.saved}};
}

Outcome run_servers(std::uint64_t seed) {
  server::sim::RunResult result = server::sim::run_schedule(seed);
  return {
      std::move(result.broken),
      {result.generations, result.bases, result.resets, result.sent_again, result.changes, result.gave_up}};
}

const Kind kinds[] = {
    {"cluster", {"formed", "ended well", "epochs"}, run_cluster},
    {"storage", {"ended well", "were refused", "points saved"}, run_storage, train::sim::explain},
    {"servers",
     {"generations", "bases", "times back to one", "pushes came again", "pulls answered early",
      "pushes were nowhere"},
     run_servers,
     server::sim::explain},
};

class Runs {
 public:
  Runs(const Kind& kind, const Options& options)
      : kind_(kind), options_(options), sums_(kind.counted.size()) {}

  bool all() {
    const TimePoint begin = real_clock().now();
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < options_.jobs; ++i) threads.emplace_back([this] { some(); });
    for (std::thread& thread : threads) thread.join();
    const std::chrono::duration<double> taken = real_clock().now() - begin;
    std::string counts;
    for (std::size_t i = 0; i < sums_.size(); ++i)
      counts += fmt::format("{} {}, ", sums_[i], kind_.counted[i]);
    fmt::print("{}: {} schedules from seed {}: {}{} broke a promise; {:.0f} a second\n", kind_.name,
               done_.load(), options_.seed, counts, broken_.load(),
               static_cast<double>(done_) / std::max(taken.count(), 1e-9));
    return broken_ == 0;
  }

 private:
  void some() {
    for (std::uint64_t i = next_++; i < options_.schedules && broken_ < options_.broken_max; i = next_++) {
      const std::uint64_t seed = options_.seed + i;
      const Outcome outcome = kind_.run(seed);
      const std::lock_guard lock(mutex_);
      for (std::size_t count = 0; count < sums_.size(); ++count) sums_[count] += outcome.counts[count];
      if (++done_ % 100'000 == 0) fmt::print("{}: {} of {}\n", kind_.name, done_.load(), options_.schedules);
      if (!outcome.broken.empty()) show(seed, outcome);
      std::fflush(stdout);
    }
  }

  void show(std::uint64_t seed, const Outcome& outcome) {
    ++broken_;
    for (const std::string& what : outcome.broken) fmt::print("seed {}: {}\n", seed, what);
    if (options_.schedules == 1 && kind_.explain)
      for (const std::string& line : kind_.explain(seed)) fmt::print("{}\n", line);
    else
      fmt::print("again: ./dev sim --only {} --seed {} --schedules 1\n", kind_.name, seed);
  }

  const Kind& kind_;
  const Options options_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> broken_{0};
  std::mutex mutex_;
  std::vector<std::uint64_t> sums_;
};

}  // namespace
}  // namespace muster::sim

int main(int count, char** arguments) {
  ::setenv("MUSTER_LOG", "off", 0);  // that disks fail is what is wanted
  muster::sim::Options options;
  options.seed = muster::entropy() >> 1;
  CLI::App app{
      "Runs small jobs in which everything goes wrong that a seed says, and checks what was promised"};
  app.add_option("--schedules", options.schedules, "how many of each kind")->capture_default_str();
  app.add_option("--seed", options.seed, "of the first; the others count up from it (drawn when absent)");
  app.add_option("--jobs", options.jobs, "threads")->capture_default_str()->check(CLI::Range(1, 1024));
  app.add_option("--only", options.only,
                 "cluster (processes and network), storage (recovery points) or servers (parameter servers)")
      ->check(CLI::IsMember({"cluster", "storage", "servers"}));
  app.add_option("--broken", options.broken_max, "stop after so many that broke a promise")
      ->capture_default_str();
  CLI11_PARSE(app, count, arguments);
  bool is_kept = true;
  for (const auto& kind : muster::sim::kinds)
    if (options.only.empty() || options.only == kind.name)
      is_kept = muster::sim::Runs(kind, options).all() && is_kept;
  return is_kept ? 0 : 1;
}
