#include "muster/launch/dashboard/job_history.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace muster::launch {
namespace {

using cluster::Role;
using cluster::message::Status;

constexpr double saved_interval_s = 5;  // marks on a time line, not a count of points
constexpr double same_words_s = 10;
constexpr std::uint64_t saving_us_min = 1000;  // less is the look at whether one is due

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string process_name(const Status::Node& node) {
  return fmt::format("{} {}", to_string(node.role), node.has_rank ? std::to_string(node.rank) : node.node_id);
}

JobEvent lost_event(const std::string& name, std::int32_t pid, double time) {
  return {"lost", time, name, fmt::format("{} (process {}) is gone", name, pid)};
}

}  // namespace

JobPoint point_of(const JobStatus& job, double time) {
  JobPoint point{.time = time};
  double losses = 0;
  int with_loss = 0;
  std::vector<double> steps;
  for (const Status::Node& node : job.status.nodes) {
    if (node.role != Role::worker) continue;
    if (node.step != cluster::no_step) point.step = std::max(point.step.value_or(0), node.step);
    if (const auto step = node.pace.step_seconds()) steps.push_back(*step);
    if (const auto samples = node.pace.samples_per_second())
      point.samples = point.samples.value_or(0) + *samples;
    if (!node.stats) continue;
    if (node.stats->loss) {
      losses += *node.stats->loss;
      ++with_loss;
    }
    if (!point.learning_rate) point.learning_rate = node.stats->learning_rate;
    if (point.metrics.empty())
      for (const auto& [name, value] : node.stats->metrics) point.metrics[name] = value;
    if (node.stats->memory_bytes != 0)
      point.memory_bytes =
          std::max(point.memory_bytes.value_or(0), static_cast<double>(node.stats->memory_bytes));
  }
  if (with_loss > 0) point.loss = losses / with_loss;
  point.step_seconds = median(std::move(steps));
  return point;
}

double RisingTime::at(double wall_seconds) {
  if (wall_seconds >= last_) shift_ = 0;
  shift_ = std::max(shift_, last_ - wall_seconds);
  return last_ = wall_seconds + shift_;
}

std::vector<JobEvent> JobHistory::add(const JobStatus& job, double time) {
  std::vector<JobEvent> news;
  look_for_lost(job, time, news);
  for (const Status::Node& node : job.status.nodes) look_at_process(node, time, news);
  look_at_state(job, time, news);
  look_at_slow(job, time, news);
  for (const JobEvent& event : news) add(event);
  add(point_of(job, time));
  return news;
}

void JobHistory::add(const JobEvent& event) {
  events_.push_back(event);
  if (events_.size() > events_max) events_.pop_front();
}

bool JobHistory::has_late(const JobEvent& event) const {
  return std::any_of(events_.begin(), events_.end(), [&](const JobEvent& other) {
    return other.kind == event.kind && other.text == event.text && event.time - other.time < same_words_s;
  });
}

void JobHistory::add(const JobPoint& point) {
  if (!points_.empty() && point.time - points_.back().time < interval_) return;
  points_.push_back(point);
  if (points_.size() <= points_max) return;
  for (std::size_t i = 0; 2 * i < points_.size(); ++i) points_[i] = points_[2 * i];
  points_.resize((points_.size() + 1) / 2);
  interval_ = (points_.back().time - points_.front().time) / static_cast<double>(points_.size());
}

void JobHistory::look_at_state(const JobStatus& job, double time, std::vector<JobEvent>& news) {
  const Status::State now = job.status.state;
  const bool is_new_epoch = now == Status::State::running && job.epoch != epoch_;
  if (now == Status::State::running && (state_ != now || is_new_epoch)) {
    news.push_back({"formed", time, "",
                    job.epoch > 1 ? fmt::format("the job goes on in epoch {}", job.epoch)
                                  : fmt::format("all {} workers are there", job.status.worker_num)});
    epoch_ = job.epoch;
  } else if (state_ != now && now == Status::State::recovering) {
    news.push_back({"recovering", time, "", job.status.text});
  } else if (state_ != now && now == Status::State::ended) {
    news.push_back({"ended", time, "", job.status.text});
  }
  state_ = now;
}

void JobHistory::look_at_process(const Status::Node& node, double time, std::vector<JobEvent>& news) {
  const std::string name = process_name(node);
  const auto [found, is_new] = processes_.try_emplace(name);
  Process& known = found->second;
  const Process before = known;
  known.is_there = before.is_there || node.is_connected;
  known.has_left = node.has_left;
  known.pid = node.pid;
  if (!is_new && !before.has_left && known.has_left) {
    news.push_back({"left", time, name, name + " is done"});
  } else if (!is_new && known.pid != before.pid) {
    if (before.is_there) news.push_back(lost_event(name, before.pid, time));
    news.push_back({"back", time, name, fmt::format("{} is back as process {}", name, known.pid)});
  }
  if (!node.stats) return;
  const auto saving = static_cast<std::size_t>(cluster::WorkPhase::saving);
  known.saving_us = node.stats->counters.own_us.at(saving);
  if (!is_new && known.saving_us > before.saving_us + saving_us_min &&
      time - saved_told_at_ >= saved_interval_s) {
    news.push_back({"saved", time, name, name + " has saved"});
    saved_told_at_ = time;
  }
  std::vector<std::string> values;
  for (const auto& [metric, value] : node.stats->metrics)
    values.push_back(fmt::format("{} {:.4g}", metric, std::isnan(value) ? std::abs(value) : value));
  known.evaluation = fmt::format("{}", fmt::join(values, ", "));
  if (node.role == Role::worker && node.rank == 0 && !values.empty() && known.evaluation != before.evaluation)
    news.push_back({"evaluated", time, name, "evaluation: " + known.evaluation});
}

// A job that recovers forgets a dead process until another has its place.
void JobHistory::look_for_lost(const JobStatus& job, double time, std::vector<JobEvent>& news) {
  std::set<std::string> there;
  for (const Status::Node& node : job.status.nodes)
    if (node.is_connected || node.has_left) there.insert(process_name(node));
  for (auto& [name, process] : processes_)
    if (process.is_there && !process.has_left && !there.contains(name)) {
      news.push_back(lost_event(name, process.pid, time));
      process.is_there = false;
    }
}

void JobHistory::look_at_slow(const JobStatus& job, double time, std::vector<JobEvent>& news) {
  std::map<std::uint32_t, std::string> now;
  for (const cluster::SlowRank& slow : job.status.slow) {
    now[slow.rank] = slow_cause_name(slow.cause);
    if (!slow_.contains(slow.rank))
      news.push_back({"slow", time, fmt::format("worker {}", slow.rank), to_string(slow)});
  }
  for (const auto& [rank, cause] : slow_)
    if (!now.contains(rank))
      news.push_back({"not_slow", time, fmt::format("worker {}", rank),
                      fmt::format("rank {} does not hold up the others any more", rank)});
  slow_ = std::move(now);
}

}  // namespace muster::launch
