#include "muster/cluster/stats_wire.h"

#include <algorithm>
#include <bit>
#include <span>

namespace muster::cluster {
namespace {

// How the numbers are written, in front of them; 0: there are none.
constexpr std::uint8_t stats_format = 2;
constexpr std::uint8_t flag_loss = 1;
constexpr std::uint8_t flag_learning_rate = 2;
constexpr std::size_t metric_size_bytes_min = 4 + 8;
constexpr std::size_t mark_size_bytes = 8 * (3 + work_phase_count);

void write_counters(net::ByteWriter& out, const ProcessCounters& counters) {
  out.number(counters.samples);
  out.number(counters.cpu_us);
  for (const std::uint64_t time : counters.own_us) out.number(time);
  out.number(counters.waiting_us);
  out.number(counters.core_wait_us);
}

ProcessCounters read_counters(net::ByteReader& in) {
  ProcessCounters counters;
  counters.samples = in.number<std::uint64_t>();
  counters.cpu_us = in.number<std::uint64_t>();
  for (std::uint64_t& time : counters.own_us) time = in.number<std::uint64_t>();
  counters.waiting_us = in.number<std::uint64_t>();
  counters.core_wait_us = in.number<std::uint64_t>();
  return counters;
}

// Without what is of the whole process.
void write_mark(net::ByteWriter& out, const StepMark& mark) {
  out.number(mark.step);
  for (const std::uint64_t time : mark.counters.own_us) out.number(time);
  out.number(mark.counters.waiting_us);
  out.number(mark.counters.core_wait_us);
}

StepMark read_mark(net::ByteReader& in) {
  StepMark mark{.step = in.number<std::uint64_t>()};
  for (std::uint64_t& time : mark.counters.own_us) time = in.number<std::uint64_t>();
  mark.counters.waiting_us = in.number<std::uint64_t>();
  mark.counters.core_wait_us = in.number<std::uint64_t>();
  return mark;
}

void write_real(net::ByteWriter& out, double value) { out.number(std::bit_cast<std::uint64_t>(value)); }
double read_real(net::ByteReader& in) { return std::bit_cast<double>(in.number<std::uint64_t>()); }

std::uint8_t read_up_to(net::ByteReader& in, std::uint8_t max, bool& in_range) {
  const auto value = in.number<std::uint8_t>();
  in_range = in_range && value <= max;
  return value <= max ? value : std::uint8_t{0};
}

}  // namespace

void write_stats(net::ByteWriter& out, const std::optional<ProcessStats>& stats) {
  out.number(stats ? stats_format : std::uint8_t{0});
  if (!stats) return;
  write_counters(out, stats->counters);
  out.number(static_cast<std::uint8_t>((stats->loss ? flag_loss : 0) |
                                       (stats->learning_rate ? flag_learning_rate : 0)));
  for (const auto& value : {stats->loss, stats->learning_rate})
    if (value) write_real(out, *value);
  out.number(stats->memory_bytes);
  out.number(stats->round_trip_us);
  out.number(stats->stage);
  const std::size_t count = std::min(stats->metrics.size(), metrics_told_max);
  out.number(static_cast<std::uint32_t>(count));
  for (const auto& [name, value] : std::span(stats->metrics).first(count)) {
    out.text(cut(name, metric_name_limit_bytes));
    write_real(out, value);
  }
  const std::size_t marks = std::min(stats->marks.size(), step_marks_told_max);
  out.number(static_cast<std::uint32_t>(marks));
  for (const StepMark& mark : std::span(stats->marks).last(marks)) write_mark(out, mark);
}

std::optional<ProcessStats> read_stats(net::ByteReader& in, bool& in_range) {
  const std::uint8_t format = read_up_to(in, stats_format, in_range);
  in_range = in_range && (format == 0 || format == stats_format);
  if (format != stats_format) return std::nullopt;
  ProcessStats stats;
  stats.counters = read_counters(in);
  const std::uint8_t bits = read_up_to(in, flag_loss | flag_learning_rate, in_range);
  if ((bits & flag_loss) != 0) stats.loss = read_real(in);
  if ((bits & flag_learning_rate) != 0) stats.learning_rate = read_real(in);
  stats.memory_bytes = in.number<std::uint64_t>();
  stats.round_trip_us = in.number<std::uint64_t>();
  stats.stage = in.number<std::uint32_t>();
  stats.metrics.resize(in.count(metrics_told_max, metric_size_bytes_min));
  for (auto& [name, value] : stats.metrics) {
    name = cut(printable(in.text(metric_name_limit_bytes)), metric_name_limit_bytes);
    value = read_real(in);
  }
  stats.marks.resize(in.count(step_marks_told_max, mark_size_bytes));
  for (StepMark& mark : stats.marks) mark = read_mark(in);
  return stats;
}

void write_pace(net::ByteWriter& out, const Pace& pace) {
  out.number(pace.window_us);
  out.number(pace.steps);
  write_counters(out, pace.spent);
}

Pace read_pace(net::ByteReader& in) {
  Pace pace;
  pace.window_us = in.number<std::uint64_t>();
  pace.steps = in.number<std::uint64_t>();
  pace.spent = read_counters(in);
  return pace;
}

void write_slow_rank(net::ByteWriter& out, const SlowRank& slow) {
  out.number(slow.rank);
  out.number(static_cast<std::uint8_t>(slow.cause));
  for (const std::uint64_t time : {slow.time_us, slow.usual_us, slow.step_us}) out.number(time);
}

SlowRank read_slow_rank(net::ByteReader& in, bool& in_range) {
  SlowRank slow;
  slow.rank = in.number<std::uint32_t>();
  slow.cause = static_cast<SlowCause>(read_up_to(in, static_cast<std::uint8_t>(last_slow_cause), in_range));
  for (std::uint64_t* time : {&slow.time_us, &slow.usual_us, &slow.step_us})
    *time = in.number<std::uint64_t>();
  return slow;
}

}  // namespace muster::cluster
