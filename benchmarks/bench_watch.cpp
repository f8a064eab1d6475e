// What a training step pays for being watched: the phases and counters that heartbeats tell of, and the mark
// of the last step that is left for whoever starts a dead process again. Nanoseconds a step.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "muster/checkpoint/checkpoint.h"
#include "muster/train/train.h"

namespace {

using namespace muster;

// The median of some rounds, so that neither the clock nor a neighbour counts.
template <class Step>
double nanoseconds_of(int steps, const Step& step) {
  std::vector<double> rounds;
  for (int round = 0; round < 31; ++round) {
    const TimePoint begin = real_clock().now();
    for (int i = 0; i < steps; ++i) step(i);
    rounds.push_back(std::chrono::duration<double, std::nano>(real_clock().now() - begin).count() / steps);
  }
  std::nth_element(rounds.begin(), rounds.begin() + rounds.size() / 2, rounds.end());
  return rounds[rounds.size() / 2];
}

}  // namespace

int main() {
  const auto phases = [](int) {
    { const train::ActivityScope reading(cluster::WorkPhase::reading_data); }
    const train::ActivityScope computing(cluster::WorkPhase::computing);
    train::note_finished();
  };
  const std::uint64_t before = train::activity_of_main_thread().finished;
  phases(0);
  if (train::activity_of_main_thread().finished != before + 1) return 1;
  fmt::print("{:<28} {:>8.1f} ns\n", "phases and counters", nanoseconds_of(100'000, phases));

  const auto folder = std::filesystem::temp_directory_path() / fmt::format("bench-watch-{}", ::getpid());
  const auto worker = folder / "job-0000000000000000/worker_0";
  std::filesystem::create_directories(worker);
  checkpoint::StepMark mark(worker, ::getpid());
  const double mark_ns =
      nanoseconds_of(10'000, [&](int i) { mark.set({.step = static_cast<std::uint64_t>(i)}); });
  const auto place = checkpoint::step_of_process(folder, ::getpid(), checkpoint::real_storage());
  std::filesystem::remove_all(folder);
  if (!place || place->step != 9'999) return 1;
  fmt::print("{:<28} {:>8.1f} ns\n", "mark of the last step", mark_ns);

  const double beat_ns = nanoseconds_of(100'000, [](int) {
    [[maybe_unused]] volatile auto finished = train::activity_of_main_thread().finished;
  });
  fmt::print("{:<28} {:>8.1f} ns, twice a second and on another thread\n", "reading them for a heartbeat",
             beat_ns);
  return 0;
}
