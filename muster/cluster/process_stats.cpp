#include "muster/cluster/process_stats.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace muster::cluster {
namespace {

constexpr Duration pace_window = std::chrono::seconds(10);
constexpr Duration pace_interval = std::chrono::seconds(1);  // between samples without a step
constexpr std::uint64_t pace_steps = 10;
constexpr Duration pace_window_max = std::chrono::minutes(5);
constexpr std::size_t samples_max = 64;

std::uint64_t rise(std::uint64_t before, std::uint64_t now) { return now > before ? now - before : 0; }

std::uint64_t microseconds(Duration duration) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(duration).count()));
}

std::uint64_t microseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(time.tv_usec);
}

// The second number of a small file of the system's; 0 where there is none.
std::uint64_t second_number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  file >> first >> second;
  return file ? second : 0;
}

}  // namespace

ProcessCounters ProcessCounters::since(const ProcessCounters& before) const {
  ProcessCounters made{.samples = rise(before.samples, samples),
                       .cpu_us = rise(before.cpu_us, cpu_us),
                       .waiting_us = rise(before.waiting_us, waiting_us),
                       .core_wait_us = rise(before.core_wait_us, core_wait_us)};
  for (std::size_t i = 0; i < work_phase_count; ++i)
    made.own_us.at(i) = rise(before.own_us.at(i), own_us.at(i));
  return made;
}

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} s", seconds);
}

bool operator==(const ProcessStats& a, const ProcessStats& b) {
  const auto bits = [](const std::optional<double>& value) {
    return value ? std::optional(std::bit_cast<std::uint64_t>(*value)) : std::nullopt;
  };
  const auto same_metric = [&](const auto& one, const auto& other) {
    return one.first == other.first && bits(one.second) == bits(other.second);
  };
  return a.counters == b.counters && bits(a.loss) == bits(b.loss) &&
         bits(a.learning_rate) == bits(b.learning_rate) && a.memory_bytes == b.memory_bytes &&
         a.round_trip_us == b.round_trip_us && a.stage == b.stage && a.marks == b.marks &&
         std::ranges::equal(a.metrics, b.metrics, same_metric);
}

std::uint64_t core_wait_us() {
  std::error_code none;
  std::uint64_t sum_ns = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", none))
    sum_ns += second_number_in(thread.path() / "schedstat");  // 0 where it has ended meanwhile
  return sum_ns / 1000;
}

void read_process_load(ProcessStats& stats) {
  stats.memory_bytes =
      second_number_in("/proc/self/statm") * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  stats.counters.core_wait_us = core_wait_us();
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0)
    stats.counters.cpu_us = microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
}

std::optional<double> Pace::step_seconds() const {
  if (steps == 0) return std::nullopt;
  return static_cast<double>(window_us) / 1e6 / static_cast<double>(steps);
}

std::optional<double> Pace::samples_per_second() const {
  if (window_us == 0 || spent.samples == 0) return std::nullopt;
  return static_cast<double>(spent.samples) * 1e6 / static_cast<double>(window_us);
}

std::optional<double> Pace::cores() const {
  if (window_us == 0) return std::nullopt;
  return share(spent.cpu_us);
}

double Pace::share(std::uint64_t time_us) const {
  return window_us == 0 ? 0 : static_cast<double>(time_us) / static_cast<double>(window_us);
}

void PaceMeter::add(TimePoint now, std::uint64_t step, const ProcessCounters& counters) {
  if (!samples_.empty() && step < samples_.back().step) samples_.clear();  // it has begun anew
  if (!samples_.empty() && step == samples_.back().step && now - samples_.back().time < pace_interval) return;
  samples_.push_back({now, step, counters});
  const auto is_enough = [&](const Sample& first) {
    const Duration window = now - first.time;
    return window >= pace_window_max ||
           (window >= pace_window && step - first.step >= std::min(pace_steps, step));
  };
  while (samples_.size() > 2 && is_enough(samples_[1])) samples_.pop_front();
  if (samples_.size() <= samples_max) return;
  std::size_t kept = 0;  // every second, and the last
  for (std::size_t i = 0; i + 1 < samples_.size(); i += 2) samples_[kept++] = samples_[i];
  samples_[kept++] = samples_.back();
  samples_.resize(kept);
}

Pace PaceMeter::pace() const {
  if (samples_.size() < 2) return {};
  const Sample& first = samples_.front();
  const Sample& last = samples_.back();
  return {.window_us = microseconds(last.time - first.time),
          .steps = last.step - first.step,
          .spent = last.counters.since(first.counters)};
}

}  // namespace muster::cluster
