#include "muster/cluster/slow_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace muster::cluster {
namespace {

// Of its time: what a slow rank works more than the others in each turn, and what these wait more.
constexpr double excess_min = 0.2;
constexpr double waiting_min = 0.1;
constexpr double excess_us_min = 200;  // of a step
// Steps may differ by nature, so that each rank is the slowest now and then. How often is learned, from what
// would be if it were any's turn; so many turns in a row are needed that chance brings them once in 1e9.
constexpr int turns_min = 6;
constexpr int turns_max = 64;
constexpr std::size_t marks_kept = 64;  // of a rank that is ahead of others
constexpr double chance_max = 1e-9;
constexpr double turns_of_prior = 8;
constexpr double turns_remembered = 256;
constexpr int turns_lost_by_another = 2;
constexpr int turns_of_slow = 24;  // it stays slow until these are lost
// Of a host whose answers take long: in themselves, against the others', how many in a row, and what all
// ranks then wait.
constexpr double round_trip_us_min = 5000;
constexpr double round_trip_ratio_min = 10;
constexpr int late_trips_min = 4;
constexpr double network_waiting_min = 0.3;
// Where most ranks lack cores by so much of their time, the lack says nothing about one of them; and who
// lacks them itself answers late whatever its network.
constexpr double core_wait_of_all = 0.1;
// Who works more also waits more for cores. Only who waits so many times as long for the same work lacks
// them.
constexpr double core_wait_ratio_min = 2;

// What the main thread did by itself.
double own_us(const ProcessCounters& spent) {
  const auto starting = static_cast<std::size_t>(WorkPhase::starting);
  const auto& own = spent.own_us;
  return static_cast<double>(std::accumulate(own.begin(), own.end(), std::uint64_t{0}) - own.at(starting));
}

// How often others wait for a rank, and how many times in a row that says more than chance.
int turns_needed(double often) {
  const double needed = std::log(chance_max) / std::log(std::clamp(often, 1e-3, 0.999));
  return std::clamp(static_cast<int>(std::ceil(needed)), turns_min, turns_max);
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

// ---- Turns ------------------------------------------------------------------------------------------------

void SlowWatch::Sorted::sort() { std::ranges::sort(numbers_); }

double SlowWatch::Sorted::median_without(double left_out) const {
  const auto at = std::ranges::lower_bound(numbers_, left_out);
  const std::size_t middle = (numbers_.size() - 1) / 2;
  return numbers_.at(static_cast<std::ptrdiff_t>(middle) < at - numbers_.begin() ? middle : middle + 1);
}

void SlowWatch::clear() {
  ranks_.clear();
  slow_.clear();
  heard_ = 0;
}

void SlowWatch::hear(std::uint32_t number, const ProcessStats& stats) {
  Rank& rank = ranks_[number];
  const bool begins_anew =
      !rank.marks.empty() && !stats.marks.empty() && stats.marks.front().step <= rank.marks.back().step;
  if (begins_anew || (!rank.turns.empty() && rank.stage != stats.stage)) {
    clear();
    return hear(number, stats);
  }
  rank.stage = stats.stage;
  rank.marks.insert(rank.marks.end(), stats.marks.begin(), stats.marks.end());
  while (rank.marks.size() > marks_kept) rank.marks.pop_front();
  rank.is_trip_new = rank.is_trip_new || rank.round_trip_us != stats.round_trip_us;
  rank.round_trip_us = stats.round_trip_us;
  if (!std::exchange(rank.is_heard, true)) ++heard_;
}

// Those that all have marked.
std::vector<std::uint64_t> SlowWatch::common_steps() const {
  std::vector<std::uint64_t> steps;
  for (const StepMark& mark : ranks_.begin()->second.marks) steps.push_back(mark.step);
  for (const auto& [number, rank] : ranks_)
    std::erase_if(steps, [&marks = rank.marks](std::uint64_t step) {
      return !std::ranges::binary_search(marks, step, {}, &StepMark::step);
    });
  return steps;
}

void SlowWatch::take_turn(std::uint64_t begin, std::uint64_t end) {
  Stages stages;
  for (auto& [number, rank] : ranks_) {
    const auto first = std::ranges::lower_bound(rank.marks, begin, {}, &StepMark::step);
    const auto last = std::ranges::lower_bound(first, rank.marks.end(), end, {}, &StepMark::step);
    const ProcessCounters spent = last->counters.since(first->counters);
    rank.marks.erase(rank.marks.begin(), last);
    rank.turns.push_back({end - begin, own_us(spent), static_cast<double>(spent.waiting_us), spent});
    if (rank.turns.size() > turns_min) rank.turns.pop_front();
    Stage& stage = stages[rank.stage];
    stage.own.add(rank.turns.back().own_us);
    stage.waiting.add(rank.turns.back().waiting_us);
  }
  for (auto& [number, stage] : stages) stage.own.sort(), stage.waiting.sort();
  for (auto& [number, rank] : ranks_) count(rank, stages.at(rank.stage));
}

// Against those that do the same stage of a placed network: others have other work by nature.
void SlowWatch::count(Rank& rank, const Stage& stage) {
  if (stage.own.size() < 2) return;
  const Turn& turn = rank.turns.back();
  const double excess = turn.own_us - stage.own.median_without(turn.own_us);
  const double waits_less = stage.waiting.median_without(turn.waiting_us) - turn.waiting_us;
  const double whole = turn.whole_us();
  const bool is_waited_for = excess > excess_min * whole && waits_less > waiting_min * whole &&
                             excess > excess_us_min * static_cast<double>(turn.steps);
  if (rank.turns_known == 0) {
    rank.turns_known = turns_of_prior;
    rank.often = 1.0 / static_cast<double>(stage.own.size());
  }
  if (is_waited_for && rank.in_a_row == 0) rank.needed = turns_needed(rank.often);
  if (!rank.is_slow) {
    rank.turns_known = std::min(rank.turns_known + 1, turns_remembered);
    rank.often += ((is_waited_for ? 1 : 0) - rank.often) / rank.turns_known;
  }
  const int most = rank.is_slow ? turns_of_slow : rank.needed;
  rank.in_a_row =
      is_waited_for ? std::min(rank.in_a_row + 1, most) : std::max(rank.in_a_row - turns_lost_by_another, 0);
}

// ---- Looks ------------------------------------------------------------------------------------------------

std::vector<SlowRank> SlowWatch::look(bool has_network) {
  for (auto& [number, rank] : ranks_) rank.is_heard = false;
  heard_ = 0;
  if (ranks_.empty()) return {};
  compare_round_trips();
  const std::vector<std::uint64_t> steps = common_steps();
  for (std::size_t i = 1; i < steps.size(); ++i) take_turn(steps[i - 1], steps[i]);
  if (steps.size() > 1)
    for (auto& [number, rank] : ranks_) judge(number, rank, has_network);
  return take_news();
}

std::vector<SlowRank> SlowWatch::take_news() {
  std::vector<SlowRank> found, news;
  for (const auto& [number, rank] : ranks_) {
    if (!rank.verdict) continue;
    found.push_back(*rank.verdict);
    if (std::ranges::find(slow_, number, &SlowRank::rank) == slow_.end()) news.push_back(*rank.verdict);
  }
  slow_ = std::move(found);
  return news;
}

// One late answer may be that of a busy process.
void SlowWatch::compare_round_trips() {
  std::map<std::uint32_t, Sorted> of_stages;
  for (const auto& [number, rank] : ranks_)
    of_stages[rank.stage].add(static_cast<double>(rank.round_trip_us));
  for (auto& [stage, sorted] : of_stages) sorted.sort();
  for (auto& [number, rank] : ranks_) {
    const Sorted& trips = of_stages.at(rank.stage);
    if (!std::exchange(rank.is_trip_new, false) || trips.size() < 2) continue;
    const auto mine = static_cast<double>(rank.round_trip_us);
    rank.usual_trip_us = trips.median_without(mine);
    const bool is_late = rank.usual_trip_us > 0 &&
                         mine >= std::max(round_trip_us_min, rank.usual_trip_us * round_trip_ratio_min);
    rank.late_trips = is_late ? rank.late_trips + 1 : 0;
  }
}

// Who is slow stays it until it has not been for a while, whatever the cause becomes.
void SlowWatch::judge(std::uint32_t number, Rank& rank, bool has_network) {
  if (rank.turns.size() < turns_min) return;
  const int needed = rank.is_slow ? 1 : rank.needed;
  const auto work = rank.in_a_row > 0 && rank.in_a_row >= needed ? judge_work(number, rank) : std::nullopt;
  if (work && !std::exchange(rank.is_slow, true)) rank.in_a_row = turns_of_slow;
  rank.is_slow = rank.is_slow && rank.in_a_row > 0;
  if (work)
    rank.verdict = work;
  else if (!rank.is_slow)
    rank.verdict = has_network ? judge_network(number, rank) : std::nullopt;
}

SlowWatch::Turn SlowWatch::sum(const Rank& rank) {
  Turn sum;
  for (const Turn& turn : rank.turns) {
    sum.steps += turn.steps;
    sum.own_us += turn.own_us;
    sum.waiting_us += turn.waiting_us;
    sum.spent.core_wait_us += turn.spent.core_wait_us;
    for (std::size_t i = 0; i < work_phase_count; ++i) sum.spent.own_us.at(i) += turn.spent.own_us.at(i);
  }
  return sum;
}

// The median of the others of its stage, in the last turns.
template <class Number>
double SlowWatch::usual(const Rank& rank, Number number_of) const {
  Sorted sorted;
  for (const auto& [number, other] : ranks_)
    if (other.stage == rank.stage) sorted.add(number_of(sum(other)));
  sorted.sort();
  return sorted.median_without(number_of(sum(rank)));
}

std::optional<SlowRank> SlowWatch::judge_work(std::uint32_t number, const Rank& rank) const {
  const Turn mine = sum(rank);
  const auto of_step = [&](double time_us) {
    return static_cast<std::uint64_t>(time_us / static_cast<double>(mine.steps));
  };
  const auto core_wait = [](const Turn& turn) { return static_cast<double>(turn.spent.core_wait_us); };
  const double usual_own = usual(rank, [](const Turn& turn) { return turn.own_us; });
  const double usual_core_wait = usual(rank, core_wait);
  if (core_wait(mine) - usual_core_wait > (mine.own_us - usual_own) / 2) {
    if (usual_core_wait > core_wait_of_all * mine.whole_us()) return std::nullopt;
    if (core_wait(mine) * usual_own > core_wait_ratio_min * usual_core_wait * mine.own_us)
      return SlowRank{number, SlowCause::host_load, of_step(core_wait(mine)), of_step(usual_core_wait),
                      of_step(mine.whole_us())};
  }
  std::size_t most = first_phase;
  std::array<double, work_phase_count> own{}, others{};
  for (std::size_t i = first_phase; i < work_phase_count; ++i) {
    const auto phase = [i](const Turn& turn) { return static_cast<double>(turn.spent.own_us.at(i)); };
    own.at(i) = phase(mine);
    others.at(i) = usual(rank, phase);
    if (own.at(i) - others.at(i) > own.at(most) - others.at(most)) most = i;
  }
  return SlowRank{number, cause_of(static_cast<WorkPhase>(most)), of_step(own.at(most)),
                  of_step(others.at(most)), of_step(mine.whole_us())};
}

// All wait for what comes from there or goes there, and no other works longer.
std::optional<SlowRank> SlowWatch::judge_network(std::uint32_t number, const Rank& rank) const {
  if (rank.late_trips < late_trips_min) return std::nullopt;
  const Turn mine = sum(rank);
  const double whole = mine.whole_us();
  const auto core_wait = static_cast<double>(mine.spent.core_wait_us);
  if (mine.waiting_us < network_waiting_min * whole || core_wait > core_wait_of_all * whole)
    return std::nullopt;
  return SlowRank{number, SlowCause::network, rank.round_trip_us,
                  static_cast<std::uint64_t>(rank.usual_trip_us),
                  static_cast<std::uint64_t>(whole / static_cast<double>(mine.steps))};
}

}  // namespace muster::cluster
