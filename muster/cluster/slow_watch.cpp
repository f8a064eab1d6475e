#include "muster/cluster/slow_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

namespace muster::cluster {
namespace {

constexpr Duration look_interval = std::chrono::milliseconds(500);
// So many intervals in a row, each with a step at least, must tell the same: steps may differ by nature.
constexpr std::size_t intervals_needed = 8;
// Of their time: what a slow rank works more than the others in each interval, and what these wait more.
constexpr double excess_min = 0.2;
constexpr double waiting_min = 0.1;
constexpr std::uint64_t excess_us_min = 200;
// Of a host whose answers take long: in themselves, against the others', and what all ranks then wait.
constexpr double round_trip_us_min = 5000;
constexpr double round_trip_ratio_min = 10;
constexpr double network_waiting_min = 0.3;
// Where most ranks lack cores by so much of their time, the lack says nothing about one of them.
constexpr double core_wait_of_all = 0.1;
// Who works more also waits more for cores. Only who waits so many times as long for the same work lacks
// them.
constexpr double core_wait_ratio_min = 2;

// Of an interval, what the main thread did by itself, and that with what it waited.
double own_us(const ProcessCounters& spent) {
  const auto starting = static_cast<std::size_t>(WorkPhase::starting);
  const auto& own = spent.own_us;
  return static_cast<double>(std::accumulate(own.begin(), own.end(), std::uint64_t{0}) - own.at(starting));
}
double whole_us(const ProcessCounters& spent) {
  return std::max(1.0, own_us(spent) + static_cast<double>(spent.waiting_us));
}

constexpr auto first_phase = static_cast<std::size_t>(WorkPhase::starting) + 1;

SlowCause cause_of(WorkPhase phase) {
  switch (phase) {
    case WorkPhase::reading_data:
      return SlowCause::reading_data;
    case WorkPhase::saving:
      return SlowCause::saving;
    case WorkPhase::evaluating:
      return SlowCause::evaluating;
    case WorkPhase::script:
      return SlowCause::script;
    case WorkPhase::starting:
    case WorkPhase::serving:
    case WorkPhase::computing:
      break;
  }
  return SlowCause::computing;
}

std::string_view words_of(SlowCause cause) {
  switch (cause) {
    case SlowCause::computing:
      return "its computing takes";
    case SlowCause::reading_data:
      return "reading its data takes";
    case SlowCause::saving:
      return "saving takes";
    case SlowCause::evaluating:
      return "evaluating takes";
    case SlowCause::script:
      return "its script (callbacks, prints) takes";
    case SlowCause::host_load:
      return "other processes have the cores of its host; waiting for one takes";
    case SlowCause::network:
      return "its network is slow; an answer of the scheduler takes";
  }
  return "";
}

}  // namespace

std::string_view slow_cause_name(SlowCause cause) {
  switch (cause) {
    case SlowCause::computing:
      return "computing";
    case SlowCause::reading_data:
      return "reading_data";
    case SlowCause::saving:
      return "saving";
    case SlowCause::evaluating:
      return "evaluating";
    case SlowCause::script:
      return "script";
    case SlowCause::host_load:
      return "host_load";
    case SlowCause::network:
      return "network";
  }
  return "";
}

std::string to_string(const SlowRank& slow) {
  const auto seconds = [](std::uint64_t microseconds) { return static_cast<double>(microseconds) / 1e6; };
  return fmt::format("rank {} holds up the others in each step ({}): {} {}, and the others {}", slow.rank,
                     time_text(seconds(slow.step_us)), words_of(slow.cause), time_text(seconds(slow.time_us)),
                     time_text(seconds(slow.usual_us)));
}

// ---- Numbers of an interval -------------------------------------------------------------------------------

SlowWatch::Shares SlowWatch::Shares::of(const ProcessCounters& spent) {
  const double whole = whole_us(spent);
  Shares made{.waiting = static_cast<double>(spent.waiting_us) / whole,
              .core_wait = static_cast<double>(spent.core_wait_us) / whole};
  for (std::size_t i = first_phase; i < work_phase_count; ++i)
    made.phases.at(i) = static_cast<double>(spent.own_us.at(i)) / whole;
  return made;
}

double SlowWatch::Shares::own() const { return std::accumulate(phases.begin(), phases.end(), 0.0); }

void SlowWatch::Shares::add(const Shares& other) {
  for (std::size_t i = 0; i < work_phase_count; ++i) phases.at(i) += other.phases.at(i);
  waiting += other.waiting;
  core_wait += other.core_wait;
}

std::size_t SlowWatch::Shares::most_above(const Shares& other) const {
  std::size_t most = first_phase;
  for (std::size_t i = first_phase; i < work_phase_count; ++i)
    if (phases.at(i) - other.phases.at(i) > phases.at(most) - other.phases.at(most)) most = i;
  return most;
}

void SlowWatch::Sorted::sort() { std::ranges::sort(numbers_); }

double SlowWatch::Sorted::median_without(double left_out) const {
  const auto at = std::ranges::lower_bound(numbers_, left_out);
  const std::size_t middle = (numbers_.size() - 1) / 2;
  return numbers_.at(static_cast<std::ptrdiff_t>(middle) < at - numbers_.begin() ? middle : middle + 1);
}

void SlowWatch::Stage::add(const Shares& shares) {
  for (std::size_t i = first_phase; i < work_phase_count; ++i) phases.at(i).add(shares.phases.at(i));
  waiting.add(shares.waiting);
  core_wait.add(shares.core_wait);
}

void SlowWatch::Stage::sort() {
  for (Sorted& phase : phases) phase.sort();
  waiting.sort();
  core_wait.sort();
}

SlowWatch::Shares SlowWatch::Stage::median_without(const Shares& left_out) const {
  Shares made{.waiting = waiting.median_without(left_out.waiting),
              .core_wait = core_wait.median_without(left_out.core_wait)};
  for (std::size_t i = first_phase; i < work_phase_count; ++i)
    made.phases.at(i) = phases.at(i).median_without(left_out.phases.at(i));
  return made;
}

// ---- Looks ------------------------------------------------------------------------------------------------

void SlowWatch::clear() {
  ranks_.clear();
  stages_.clear();
  slow_.clear();
}

std::vector<SlowRank> SlowWatch::look(const std::vector<Worker>& workers, TimePoint now) {
  if (!take(workers, now)) return {};
  std::vector<SlowRank> found = judge_all();
  std::vector<SlowRank> news;
  for (const SlowRank& each : found)
    if (std::ranges::none_of(slow_, [&](const SlowRank& old) { return old.rank == each.rank; }))
      news.push_back(each);
  slow_ = std::move(found);
  return news;
}

// Whether an interval of all workers has ended: each has made a step in it.
bool SlowWatch::take(const std::vector<Worker>& workers, TimePoint now) {
  if (now - taken_at_ < look_interval) return false;
  const bool are_the_same =
      workers.size() == ranks_.size() && std::ranges::all_of(workers, [this](const Worker& worker) {
        const auto known = ranks_.find(worker.rank);
        return known != ranks_.end() && worker.step >= known->second.step;
      });
  if (!are_the_same) {
    clear();
    for (const Worker& worker : workers)
      ranks_[worker.rank] = {worker.step, worker.stats->stage, worker.stats->counters, {}};
    taken_at_ = now;
    return false;
  }
  if (std::ranges::any_of(workers,
                          [this](const Worker& each) { return each.step == ranks_.at(each.rank).step; }))
    return false;
  Stages& stages = stages_.emplace_back();
  for (const Worker& worker : workers) {
    Rank& rank = ranks_.at(worker.rank);
    const ProcessCounters spent = worker.stats->counters.since(rank.counters);
    rank.intervals.push_back(
        {worker.step - rank.step, whole_us(spent), Shares::of(spent), worker.stats->round_trip_us});
    if (rank.intervals.size() > intervals_needed) rank.intervals.pop_front();
    stages[rank.stage].add(rank.intervals.back().shares);
    rank.step = worker.step;
    rank.counters = worker.stats->counters;
  }
  for (auto& [number, stage] : stages) stage.sort();
  if (stages_.size() > intervals_needed) stages_.pop_front();
  taken_at_ = now;
  return true;
}

// Against those that do the same stage of a placed network: others have other work by nature.
std::vector<SlowRank> SlowWatch::judge_all() const {
  if (stages_.size() < intervals_needed) return {};
  RoundTrips round_trips;
  for (const auto& [number, rank] : ranks_) round_trips[rank.stage].add(round_trip_us(rank));
  for (auto& [stage, sorted] : round_trips) sorted.sort();
  std::vector<SlowRank> found;
  for (const auto& [number, rank] : ranks_) {
    const Sorted& of_stage = round_trips.at(rank.stage);
    if (of_stage.size() < 2) continue;
    auto slow = judge_work(number, rank);
    if (!slow) slow = judge_network(number, rank, of_stage);
    if (slow) found.push_back(*slow);
  }
  return found;
}

// Shares of time, not times of steps: a heartbeat comes in the middle of a step, and all who step together
// take the same time for it.
std::optional<SlowRank> SlowWatch::judge_work(std::uint32_t number, const Rank& rank) const {
  Shares mine, usual;
  for (std::size_t i = 0; i < intervals_needed; ++i) {
    const Shares& here = rank.intervals[i].shares;
    const Shares there = stages_[i].at(rank.stage).median_without(here);
    if (here.own() - there.own() < excess_min || there.waiting - here.waiting < waiting_min)
      return std::nullopt;
    mine.add(here);
    usual.add(there);
  }
  const double step_us = mean_step_us(rank);
  const auto of_step = [&](double share) {
    return static_cast<std::uint64_t>(share / static_cast<double>(intervals_needed) * step_us);
  };
  const double excess = mine.own() - usual.own();
  if (of_step(excess) < excess_us_min) return std::nullopt;
  if (mine.core_wait - usual.core_wait > excess / 2) {
    if (usual.core_wait > core_wait_of_all * intervals_needed) return std::nullopt;
    if (mine.core_wait * usual.own() > core_wait_ratio_min * usual.core_wait * mine.own())
      return SlowRank{number, SlowCause::host_load, of_step(mine.core_wait), of_step(usual.core_wait),
                      of_step(intervals_needed)};
  }
  const std::size_t most = mine.most_above(usual);
  return SlowRank{number, cause_of(static_cast<WorkPhase>(most)), of_step(mine.phases.at(most)),
                  of_step(usual.phases.at(most)), of_step(intervals_needed)};
}

// The shortest: a busy process answers late, now and then.
double SlowWatch::round_trip_us(const Rank& rank) {
  std::uint64_t least = rank.intervals.front().round_trip_us;
  for (const Interval& interval : rank.intervals) least = std::min(least, interval.round_trip_us);
  return static_cast<double>(least);
}

// All wait for what comes from there or goes there, and no other works longer.
std::optional<SlowRank> SlowWatch::judge_network(std::uint32_t number, const Rank& rank,
                                                 const Sorted& usual) const {
  const double mine = round_trip_us(rank);
  const double theirs = usual.median_without(mine);
  if (theirs <= 0 || mine < std::max(round_trip_us_min, theirs * round_trip_ratio_min)) return std::nullopt;
  double waiting = 0;
  for (const Interval& each : rank.intervals) waiting += each.shares.waiting;
  if (waiting < network_waiting_min * static_cast<double>(intervals_needed)) return std::nullopt;
  return SlowRank{number, SlowCause::network, static_cast<std::uint64_t>(mine),
                  static_cast<std::uint64_t>(theirs), static_cast<std::uint64_t>(mean_step_us(rank))};
}

double SlowWatch::mean_step_us(const Rank& rank) {
  double whole = 0;
  std::uint64_t steps = 0;
  for (const Interval& each : rank.intervals) {
    whole += each.whole_us;
    steps += each.steps;
  }
  return whole / static_cast<double>(steps);
}

}  // namespace muster::cluster
