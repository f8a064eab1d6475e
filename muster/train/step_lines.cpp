#include "muster/train/step_lines.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "muster/graph/cost/step_parts.h"
#include "muster/json/json.h"
#include "muster/net/net.h"
#include "muster/train/activity_scope.h"
#include "muster/train/explain.h"
#include "muster/train/flight.h"
#include "muster/train/process.h"

namespace muster::train {
namespace {

using nlohmann::json;

constexpr std::uint64_t step_interval = 50;
constexpr std::size_t lines_kept = 4;  // ranks that begin a second at different steps soon have one in common
constexpr std::size_t spans_max = 1000;

std::string_view part_name(graph::StepPart part) {
  switch (part) {
    case graph::StepPart::forward:
      return "forward";
    case graph::StepPart::backward:
      return "backward";
    case graph::StepPart::update:
      return "update";
  }
  return "ops";
}

json spans_json(const StepLines::Line& line, const std::vector<StepLines::Span>& spans) {
  json made = json::array();
  for (const StepLines::Span& span : spans)
    made.push_back({span.kind, span.begin_ns - line.begin_ns, span.end_ns - line.begin_ns});
  return made;
}

json calls_json(const StepLines::Line& line) {
  json made = json::array();
  for (const telemetry::FlightRecord& call : line.calls)
    made.push_back({to_string(call.kind), fmt::format("{:x}", call.group), call.number,
                    call.begin_ns - line.begin_ns, call.end_ns - line.begin_ns});
  return made;
}

}  // namespace

StepLines::StepLines(std::string folder, std::uint32_t rank, std::string flight_path)
    : folder_(std::move(folder)), rank_(rank), flight_path_(std::move(flight_path)) {}

// By its number first: all ranks look at their clocks behind the same steps.
bool StepLines::is_due(std::uint64_t step) {
  const bool is_early = step == 2 || step == 5 || step == 10 || step == 20;
  if (!is_early && step % step_interval != 0) return false;
  if (process().profile.active.load(std::memory_order_relaxed) != nullptr) return false;
  const std::int64_t second = telemetry::wall_ns() / 1'000'000'000;
  return std::exchange(second_, second) != second || is_early;
}

void StepLines::made_step(std::uint64_t step) {
  if (is_recording()) finish();
  if (is_due(step + 1)) begin(step + 1);
}

std::int64_t StepLines::wall(TimePoint time) const {
  return wall_offset_ns_ + std::chrono::nanoseconds(time.time_since_epoch()).count();
}

void StepLines::begin(std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = real_clock().now();
  wall_offset_ns_ = telemetry::wall_ns() - std::chrono::nanoseconds(now.time_since_epoch()).count();
  now_ = {.step = step, .begin_ns = wall(now)};
  now_.phases.push_back({cluster::phase_name(activity_of_main_thread().phase), now_.begin_ns});
  parts_.clear();  // a plan may lie where another one has been
  is_recording_ = true;
}

void StepLines::enter(cluster::WorkPhase phase) {
  if (!may_lock()) return;
  const std::lock_guard lock(mutex_);
  const std::string_view kind = cluster::phase_name(phase);
  if (!is_recording() || now_.phases.back().kind == kind || now_.phases.size() >= spans_max) return;
  now_.phases.back().end_ns = wall(real_clock().now());
  now_.phases.push_back({kind, now_.phases.back().end_ns});
}

std::string_view StepLines::kind_of(const Step& step) {
  if (step.talks) return "call";
  const auto [known, is_new] = parts_.try_emplace(step.plan);
  if (is_new) known->second = graph::parts_of_plan(step);
  return step.index < known->second.size() ? part_name(known->second[step.index]) : "ops";
}

void StepLines::ran(const Step& step, TimePoint begin, TimePoint end, const Describe&) {
  if (!may_lock()) return;
  const std::lock_guard lock(mutex_);
  if (!is_recording()) return;
  const std::string_view kind = kind_of(step);
  // What the main thread did between two ops ends a part: a callback, reading.
  const bool goes_on = !now_.parts.empty() && now_.parts.back().kind == kind && kind != "call" &&
                       now_.phases.back().begin_ns <= now_.parts.back().begin_ns;
  if (goes_on)
    now_.parts.back().end_ns = wall(end);
  else if (now_.parts.size() < spans_max)
    now_.parts.push_back({kind, wall(begin), wall(end)});
}

void StepLines::finish() {
  {
    const std::lock_guard lock(mutex_);
    is_recording_ = false;
    now_.end_ns = now_.phases.back().end_ns = wall(real_clock().now());
    const auto flight = telemetry::read_flight(flight_path_);
    if (flight)
      for (const telemetry::FlightRecord& call : flight->records)
        if (call.end_ns > now_.begin_ns && call.begin_ns < now_.end_ns && now_.calls.size() < spans_max)
          now_.calls.push_back(call);
    kept_.push_back(std::exchange(now_, {}));
    if (kept_.size() > lines_kept) kept_.pop_front();
  }
  write();
}

// Whole for who reads it, and not forced to the disk: the next one comes soon.
void StepLines::write() {
  json lines = json::array();
  for (const Line& line : kept_)
    lines.push_back({{"step", line.step},
                     {"begin_ns", line.begin_ns},
                     {"end_ns", line.end_ns},
                     {"phases", spans_json(line, line.phases)},
                     {"parts", spans_json(line, line.parts)},
                     {"calls", calls_json(line)}});
  const json whole = {{"rank", rank_}, {"host", net::host_name()}, {"lines", std::move(lines)}};
  const std::string path = fmt::format("{}/worker_{}.json", folder_, rank_);
  const std::string fresh = path + ".new";
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  {
    std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
    file << whole.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
    if (!file.flush()) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(fresh, path, error);
  if (error && !std::exchange(has_warned_, true))
    log::warning(fmt::format("the page will not show a step of this rank: cannot write {}: {}", path,
                             error.message()));
}

void keep_step_lines(std::uint32_t rank, const Environment& environment) {
  const std::string folder = environment.get("MUSTER_RUN_FOLDER").value_or("");
  if (folder.empty() || explain_mode() != ExplainMode::off) return;
  // It lives as long as the process: a run may hold it.
  process().step_lines = new StepLines(folder + "/timeline", rank, flight_file(folder, rank));
}

}  // namespace muster::train
