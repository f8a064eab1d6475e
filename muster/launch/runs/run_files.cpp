#include "muster/launch/runs/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "muster/json/json.h"
#include "muster/launch/dashboard/job_json.h"
#include "muster/launch/runs/run_record.h"

namespace muster::launch {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::streamoff tail_bytes = std::streamoff{4} << 20;
constexpr std::size_t history_line_bytes_max = std::size_t{16} << 20;
constexpr std::size_t points_read_max = 1'000'000;
constexpr const char* usual_parent = "muster-logs";

std::optional<json> parsed(const std::string& text) {
  if (text.size() > history_line_bytes_max) return std::nullopt;
  auto value = muster::json::parse(text, "", {.bytes = history_line_bytes_max, .values = 4'000'000});
  if (!value || !value->is_object()) return std::nullopt;  // the last line may be cut
  return *std::move(value);
}

json read_object(const std::string& path) {
  std::ifstream file = file_of_bytes(path);
  if (!file) return nullptr;
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return parsed(text).value_or(json(nullptr));
}

// The last state and the end, which stand in the last lines.
void read_tail(RunFiles& run) {
  std::ifstream file = file_of_bytes(run.folder + '/' + history_name);
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  if (size <= 0) return;
  file.seekg(std::max<std::streamoff>(0, size - tail_bytes));
  for (std::string line; std::getline(file, line);) {
    const bool is_state = line.starts_with("{\"state\"");
    if (!is_state && !line.starts_with("{\"end\"")) continue;
    const auto value = parsed(line);
    if (!value) continue;
    json& wanted = is_state ? run.last_state : run.end;
    const json& found = value->at(is_state ? "state" : "end");
    if (found.is_object()) wanted = found;
  }
}

void read_history(RunFiles& run) {
  std::ifstream file = file_of_bytes(run.folder + '/' + history_name);
  for (std::string line; std::getline(file, line) && run.points.size() < points_read_max;) {
    const auto value = parsed(line);
    if (!value) continue;
    if (const json state = value->value("state", json()); state.is_object())
      run.points.push_back(point_from(state));
    if (const json event = value->value("event", json()); event.is_object())
      run.events.push_back(event_from(event));
  }
  std::ranges::stable_sort(run.events, {}, &JobEvent::time);  // two processes wrote them
}

std::optional<double> member_number(const json& object, const char* name) {
  const json value = member(object, name);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

// A file that several runs have appended to has lines of each.
void read_metrics(RunFiles& run) {
  std::string path = member_text(run.description, "metrics_file");
  if (const auto rank = path.find("{rank}"); rank != std::string::npos) path.replace(rank, 6, "0");
  std::ifstream file = file_of_bytes(path);
  if (!file) return;
  const double until = member_number(run.end, "time").value_or(HUGE_VAL);
  std::vector<JobPoint> points;
  for (std::string text; std::getline(file, text) && points.size() < points_read_max;) {
    const auto line = parsed(text);
    const auto time = line ? member_number(*line, "time") : std::nullopt;
    if (!time || *time < run.began() || *time > until || !line->contains("step_seconds")) continue;
    points.push_back(
        {.time = *time,
         .step = static_cast<std::uint64_t>(std::max(0.0, member_number(*line, "step").value_or(0))),
         .loss = member_number(*line, "loss"),
         .learning_rate = member_number(*line, "learning_rate"),
         .step_seconds = member_number(*line, "step_seconds")});
  }
  if (!points.empty()) run.points = std::move(points);
}

}  // namespace

std::ifstream file_of_bytes(const std::string& path) {
  std::error_code ignored;
  std::ifstream file;
  if (fs::is_regular_file(path, ignored))
    file.open(path, std::ios::binary);
  else
    file.setstate(std::ios::failbit);
  return file;
}

json member(const json& object, const char* name) {
  return object.is_object() ? object.value(name, json()) : json();
}

std::string member_text(const json& object, const char* name) {
  const json value = member(object, name);
  if (value.is_string()) return printable(value.get<std::string>());
  return value.is_null() ? "" : printable(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::string RunFiles::state() const {
  if (const auto code = member_number(end, "exit_code")) {
    if (*code == 0) return "done";
    return member_number(end, "signal").value_or(0) != 0 ? "interrupted"
                                                         : fmt::format("failed ({:g})", *code);
  }
  if (runs == false) return "cut off";  // the launcher was killed, or the host has gone
  const std::string state = member_text(last_state, "state");
  return !runs ? "unknown" : state.empty() ? "running" : state;
}

double RunFiles::began() const { return member_number(description, "began").value_or(0); }

std::optional<double> RunFiles::seconds(double now) const {
  const double last = runs == true ? now : member_number(last_state, "time").value_or(began());
  return member_number(end, "time").value_or(last) - began();
}

JobPoint RunFiles::last_point() const {
  const JobPoint seen = !points.empty()          ? points.back()
                        : last_state.is_object() ? point_from(last_state)
                                                 : JobPoint{};
  return last_point_of(seen, training);
}

std::optional<double> RunFiles::last_step() const {
  const auto step = last_point().step;
  return step ? std::optional(static_cast<double>(*step)) : std::nullopt;
}

std::optional<double> RunFiles::last_loss() const { return last_point().loss; }

Result<RunFiles> read_run(const std::string& folder, RunDepth depth) {
  RunFiles run{.folder = folder};
  const fs::path path = fs::absolute(folder).lexically_normal();
  run.name = printable((path.has_filename() ? path : path.parent_path()).filename().string());
  run.description = read_object(folder + '/' + description_name);
  if (run.description.is_null())
    return fail(Code::not_found, fmt::format("'{}' is no folder of a run: it has no {} that can be read; "
                                             "`muster run` names its folder when it starts",
                                             printable(folder), description_name));
  run.repository = read_object(folder + '/' + repository_name);
  run.training = read_object(folder + '/' + training_name);
  run.runs = is_recording(folder);
  read_tail(run);
  if (depth == RunDepth::whole) read_history(run);
  if (depth == RunDepth::whole) read_metrics(run);
  return run;
}

Result<std::string> find_run(const std::string& name) {
  std::error_code ignored;
  for (const std::string& folder : {name, std::string(usual_parent) + '/' + name})
    if (fs::is_directory(folder, ignored)) return folder;
  return fail(Code::not_found,
              fmt::format("there is no folder '{}', and none of that name in {}: `muster runs` lists them",
                          printable(name), usual_parent));
}

}  // namespace muster::launch
