#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "muster/launch/dashboard/job_json.h"
#include "muster/launch/runs/run_files.h"
#include "muster/launch/runs/run_record.h"
#include "muster/launch/runs/run_row.h"
#include "muster/launch/runs/runs.h"
#include "muster/launch/table.h"

namespace muster::launch {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool has_description(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / description_name, ignored);
}

// A folder whose files cannot be read is shown as one.
std::vector<RunFiles> runs_of(const std::string& folder) {
  std::vector<std::string> folders;
  if (has_description(folder)) folders.push_back(folder);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (has_description(entry.path())) folders.push_back(entry.path().string());
  std::vector<RunFiles> runs;
  for (const std::string& each : folders) {
    auto run = read_run(each, RunDepth::summary);
    if (run)
      runs.push_back(*std::move(run));
    else
      runs.push_back({.folder = each, .name = printable(fs::path(each).filename().string())});
  }
  std::ranges::sort(runs, [](const RunFiles& a, const RunFiles& b) {
    return std::pair(a.began(), a.name) < std::pair(b.began(), b.name);
  });
  return runs;
}

Result<std::vector<RunFiles>> some_runs(const std::string& folder) {
  auto runs = runs_of(folder);
  if (runs.empty())
    return fail(Code::not_found,
                fmt::format("there is no run in '{}': `muster run` keeps each in a folder of muster-logs, or "
                            "in the one that --run-folder names",
                            printable(folder)));
  return runs;
}

}  // namespace

std::string time_of_day(double time) {
  if (time <= 0) return "-";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(static_cast<std::time_t>(time)));
}

std::string length_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  if (seconds < 100) return fmt::format("{:.3g} s", std::max(0.0, seconds));
  if (whole < 6000) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string number_cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g}", *value) : "-";
}

std::string step_cell(const std::optional<double>& step) {
  return step ? fmt::format("{}", static_cast<std::uint64_t>(*step)) : "-";
}

json run_json(const RunFiles& run, double now) {
  const auto or_null = [](const std::optional<double>& value) { return value ? json(*value) : json(); };
  return {{"name", run.name},
          {"folder", run.folder},
          {"script", member_text(run.description, "script")},
          {"began", run.began()},
          {"seconds", or_null(run.seconds(now))},
          {"ranks", member(run.description, "ranks")},
          {"state", run.description.is_null() ? "unreadable" : run.state()},
          {"exit_code", member(run.end, "exit_code")},
          {"steps", or_null(run.last_step())},
          {"loss", or_null(run.last_loss())},
          {"commit", member_text(run.repository, "commit")}};
}

Result<std::string> runs_text(const std::string& folder) {
  MUSTER_TRY(const auto runs, some_runs(folder));
  std::vector<std::vector<std::string>> rows = {
      {"run", "script", "began", "ranks", "state", "time", "steps", "loss"}};
  const double now = telemetry::wall_seconds();
  for (const RunFiles& run : runs) {
    if (run.description.is_null()) {
      rows.push_back(
          {run.name, fmt::format("{} cannot be read", description_name), "-", "-", "-", "-", "-", "-"});
      continue;
    }
    const auto seconds = run.seconds(now);
    rows.push_back({run.name, member_text(run.description, "script"), time_of_day(run.began()),
                    member_text(run.description, "ranks"), run.state(), seconds ? length_text(*seconds) : "-",
                    step_cell(run.last_step()), number_cell(run.last_loss())});
  }
  return table(rows);
}

Result<std::string> runs_json(const std::string& folder) {
  MUSTER_TRY(const auto runs, some_runs(folder));
  json made = json::array();
  const double now = telemetry::wall_seconds();
  for (const RunFiles& run : runs) made.push_back(run_json(run, now));
  return text_of({{"runs", std::move(made)}});
}

}  // namespace muster::launch
