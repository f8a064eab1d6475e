#include "muster/launch/dashboard/job_json.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>

namespace muster::launch {
namespace {

using cluster::in_seconds;
using cluster::message::Status;
using nlohmann::json;

constexpr std::string_view metric_prefix = "metric/";

template <class T>
json null_or(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

// JSON has no word for NaN and infinity, and a loss that is one is worth seeing.
json number_json(const std::optional<double>& value) {
  if (!value) return nullptr;
  if (std::isnan(*value)) return "nan";
  if (std::isinf(*value)) return *value > 0 ? "inf" : "-inf";
  return *value;
}

std::optional<double> number_from(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::nan("");
  if (value == "inf" || value == "-inf") return value == "inf" ? HUGE_VAL : -HUGE_VAL;
  return std::nullopt;
}

// Of four digits: the shorter text is what a thousand ranks cost.
json rounded(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value) || *value == 0) return number_json(value);
  const double scale = std::pow(10.0, 4 - std::ceil(std::log10(std::abs(*value))));
  return std::round(*value * scale) / scale;
}

json shares_of(const cluster::Pace& pace) {
  if (pace.window_us == 0) return nullptr;
  const auto percent = [&](std::uint64_t time) { return std::lround(100 * pace.share(time)); };
  json shares = json::array({percent(pace.spent.waiting_us)});
  for (const std::uint64_t time : pace.spent.own_us) shares.push_back(percent(time));
  return shares;
}

// 0 where it is in none. Of a message there is the other rank, which says nothing of how far this one is.
std::uint64_t number_of_call(const cluster::Activity& activity) {
  const bool is_message = activity.call == CallKind::send || activity.call == CallKind::receive;
  return activity.call == CallKind::none || is_message ? 0 : activity.call_number;
}

json row_of(const Status::Node& node) {
  const cluster::ProcessStats stats = node.stats.value_or(cluster::ProcessStats{});
  return json::array({to_string(node.role),
                      node.has_rank ? json(node.rank) : json(nullptr),
                      node.node_id,
                      node.address,
                      node.pid,
                      node.step == cluster::no_step ? json(nullptr) : json(node.step),
                      node.activity.train_epoch,
                      node.has_left       ? "done"
                      : node.is_connected ? to_string(node.activity)
                                          : "not connected",
                      phase_name(node.activity.phase),
                      waits(node.activity),
                      number_of_call(node.activity),
                      node.is_connected,
                      node.has_left,
                      in_seconds(node.silence),
                      rounded(stats.loss),
                      stats.memory_bytes,
                      rounded(node.pace.cores()),
                      rounded(node.pace.step_seconds()),
                      rounded(node.pace.samples_per_second()),
                      shares_of(node.pace)});
}

// Of the last evaluation, as the first worker that has one tells it.
json metrics_of(const Status& status) {
  json made = json::object();
  for (const Status::Node& node : status.nodes)
    if (node.stats && !node.stats->metrics.empty()) {
      for (const auto& [name, value] : node.stats->metrics) made[name] = number_json(value);
      return made;
    }
  return made;
}

json slow_json(const std::vector<cluster::SlowRank>& slow) {
  json made = json::array();
  for (const cluster::SlowRank& each : slow)
    made.push_back({{"rank", each.rank}, {"cause", slow_cause_name(each.cause)}, {"text", to_string(each)}});
  return made;
}

}  // namespace

json rank_columns() {
  return json::array({"role",  "rank",   "node",  "host",         "pid",       "step",  "epoch",
                      "doing", "phase",  "calls", "call",         "connected", "left",  "silence",
                      "loss",  "memory", "cores", "step_seconds", "samples",   "shares"});
}

json state_json(const JobStatus& job, double time) {
  json ranks = json::array();
  for (const Status::Node& node : job.status.nodes) ranks.push_back(row_of(node));
  return {{"time", time},
          {"job", fmt::format("{:016x}", job.job_id)},
          {"scheduler", job.scheduler},
          {"state", state_name(job.status.state)},
          {"text", job.status.text},
          {"epoch", job.epoch},
          {"recovers", job.status.recovers},
          {"age_s", in_seconds(job.status.age)},
          {"without_step_s", in_seconds(job.status.without_step)},
          {"workers", job.status.worker_num},
          {"servers", job.status.server_num},
          {"slow", slow_json(job.status.slow)},
          {"metrics", metrics_of(job.status)},
          {"point", point_json(point_of(job, time))},
          {"ranks", std::move(ranks)}};
}

json point_json(const JobPoint& point) {
  json made = {{"time", point.time},
               {"step", null_or(point.step)},
               {"loss", number_json(point.loss)},
               {"learning_rate", number_json(point.learning_rate)},
               {"step_seconds", number_json(point.step_seconds)},
               {"samples", number_json(point.samples)},
               {"memory_bytes", number_json(point.memory_bytes)}};
  for (const auto& [name, value] : point.metrics)
    made[std::string(metric_prefix) + name] = number_json(value);
  return made;
}

// All columns are equally long: what a point does not have is null.
json points_json(const std::vector<JobPoint>& points) {
  json columns = json::object();
  const auto fill = [](json& column, std::size_t size) {
    while (column.size() < size) column.push_back(nullptr);
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    const json numbers = point_json(points[i]);
    for (const auto& [name, value] : numbers.items()) {
      fill(columns[name], i);
      columns[name].push_back(value);
    }
  }
  for (json& column : columns) fill(column, points.size());
  return columns;
}

JobPoint point_from(const json& state) {
  JobPoint made;
  const json point = state.value("point", json::object());
  if (!point.is_object()) return made;
  made.time = number_from(point.value("time", json())).value_or(0);
  if (const json step = point.value("step", json()); step.is_number_unsigned())
    made.step = step.get<std::uint64_t>();
  made.loss = number_from(point.value("loss", json()));
  made.learning_rate = number_from(point.value("learning_rate", json()));
  made.step_seconds = number_from(point.value("step_seconds", json()));
  made.samples = number_from(point.value("samples", json()));
  made.memory_bytes = number_from(point.value("memory_bytes", json()));
  for (const auto& [name, value] : point.items())
    if (const auto number = number_from(value); number && name.starts_with(metric_prefix))
      made.metrics[name.substr(metric_prefix.size())] = *number;
  return made;
}

JobPoint last_point_of(const JobPoint& seen, const json& training) {
  const JobPoint told = training.is_object() ? point_from(training) : JobPoint{};
  return told.step && told.step >= seen.step ? told : seen;
}

json event_json(const JobEvent& event) {
  return {{"kind", event.kind}, {"time", event.time}, {"process", event.process}, {"text", event.text}};
}

JobEvent event_from(const json& event) {
  const auto text = [&](const char* name) {
    const json value = event.value(name, json());
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  return {text("kind"), number_from(event.value("time", json())).value_or(0), text("process"), text("text")};
}

std::string text_of(const json& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + '\n';
}

std::string line_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace muster::launch
