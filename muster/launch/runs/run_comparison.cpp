#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include "muster/launch/dashboard/job_json.h"
#include "muster/launch/runs/run_files.h"
#include "muster/launch/runs/run_record.h"
#include "muster/launch/runs/run_row.h"
#include "muster/launch/runs/runs.h"
#include "muster/launch/table.h"

namespace muster::launch {
namespace {

using nlohmann::json;

constexpr std::size_t value_bytes_max = 60;
constexpr std::size_t compared_steps = 5;

// Of both runs, by one name; "-" where one has none.
struct Row {
  std::string name;
  std::array<std::string, 2> values;
  bool differs() const { return values[0] != values[1]; }
};
struct Section {
  std::string title;
  std::vector<Row> rows;
  std::string equal = "the same";  // what is said where no row differs
};
using Runs = std::array<RunFiles, 2>;

std::string shortened(std::string text) {
  if (text.empty()) return "-";
  if (text.size() <= value_bytes_max) return text;
  return std::string(cut(text, value_bytes_max)) + "...";
}

// All members that either of two objects has, in their order.
template <class Text>
std::vector<Row> rows_of_members(const std::array<json, 2>& objects, Text text) {
  std::set<std::string> names;
  for (const json& object : objects)
    if (object.is_object())
      for (const auto& [name, value] : object.items()) names.insert(name);
  std::vector<Row> rows;
  for (const std::string& name : names) {
    const auto value = [&](const json& object) {
      return object.is_object() && object.contains(name) ? shortened(text(object, name.c_str())) : "-";
    };
    rows.push_back({printable(name), {value(objects[0]), value(objects[1])}});
  }
  return rows;
}

std::array<json, 2> members(const Runs& runs, const char* name) {
  return {member(runs[0].description, name), member(runs[1].description, name)};
}

// The same value said by another source is no difference.
std::vector<Row> setting_rows(const Runs& runs) {
  std::vector<Row> rows;
  for (const char* kind : {"settings", "variables"})
    for (Row& row : rows_of_members(members(runs, kind), [](const json&object, const char*name) {
           return member_text(object.at(name), "value");
         }))
      if (row.name != "logs") rows.push_back(std::move(row));
  return rows;
}

std::vector<Row> version_rows(const Runs& runs) {
  std::vector<Row> rows = {
      {"muster", {member_text(runs[0].description, "muster"), member_text(runs[1].description, "muster")}}};
  const auto pythons = members(runs, "python");
  rows.push_back(
      {"python",
       {shortened(member_text(pythons[0], "version")), shortened(member_text(pythons[1], "version"))}});
  for (Row& row :
       rows_of_members({member(pythons[0], "packages"), member(pythons[1], "packages")}, member_text))
    rows.push_back(std::move(row));
  return rows;
}

std::string changes_text(const RunFiles& run) {
  const json changed = member(run.repository, "changed");
  if (!changed.is_array()) return member_text(run.repository, "problem");
  return changed.empty() ? "none" : fmt::format("{} file{}", changed.size(), changed.size() == 1 ? "" : "s");
}

std::string changes_of(const RunFiles& run) {
  std::ifstream file = file_of_bytes(run.folder + '/' + changes_name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Nothing is in a repository, or in changes.diff, of a file that git does not know.
Row script_row(const Runs& runs) {
  Row row{.name = "text of the script", .values = {}};
  for (std::size_t i = 0; i < runs.size(); ++i)
    row.values.at(i) = shortened(member_text(runs.at(i).description, "script_hash"));
  if (row.values[0] == "-" || row.values[1] == "-") row.values = {"-", "-"};  // one has been kept without it
  return row;
}

std::vector<Row> code_rows(const Runs& runs) {
  std::vector<Row> rows = {script_row(runs)};
  for (const char* name : {"commit", "branch"})
    rows.push_back({name,
                    {shortened(member_text(runs[0].repository, name)),
                     shortened(member_text(runs[1].repository, name))}});
  Row changes{"changed since", {shortened(changes_text(runs[0])), shortened(changes_text(runs[1]))}};
  if (!changes.differs() && changes_of(runs[0]) != changes_of(runs[1])) changes.values[1] += ", others";
  rows.push_back(std::move(changes));
  return rows;
}

std::optional<double> median_of(const std::vector<JobPoint>& points,
                                std::optional<double> JobPoint::*number) {
  std::vector<double> values;
  for (const JobPoint& point : points)
    if (const auto& value = point.*number) values.push_back(*value);
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

template <class Text>
Row row_of(const std::string& name, const Runs& runs, Text text) {
  return {name, {shortened(text(runs[0])), shortened(text(runs[1]))}};
}

std::vector<Row> run_rows(const Runs& runs, double now) {
  const auto described = [&](const char* name) {
    return row_of(name, runs, [&](const RunFiles& run) { return member_text(run.description, name); });
  };
  const auto median_row = [&](const char* name, std::optional<double> JobPoint::*number) {
    return row_of(name, runs,
                  [&](const RunFiles& run) { return number_cell(median_of(run.points, number)); });
  };
  return {
      described("script"),
      row_of("began", runs, [](const RunFiles& run) { return time_of_day(run.began()); }),
      described("ranks"),
      row_of("seed", runs, [](const RunFiles& run) { return member_text(run.training, "seed"); }),
      row_of("state", runs, [](const RunFiles& run) { return run.state(); }),
      row_of("time", runs, [&](const RunFiles& run) { return length_text(run.seconds(now).value_or(0)); }),
      row_of("steps", runs, [](const RunFiles& run) { return step_cell(run.last_step()); }),
      row_of("last loss", runs, [](const RunFiles& run) { return number_cell(run.last_loss()); }),
      median_row("seconds a step", &JobPoint::step_seconds),
      median_row("samples a second", &JobPoint::samples)};
}

// What was known at that step: the newest point that is not behind it. The last step's is kept by itself.
std::optional<double> loss_at(const RunFiles& run, std::uint64_t step) {
  if (run.last_step() == static_cast<double>(step)) return run.last_loss();
  std::optional<double> loss;
  for (const JobPoint& point : run.points)
    if (point.step && *point.step <= step && point.loss) loss = point.loss;
  return loss;
}

// Evaluations at the end, and the loss at a few steps that both have made.
std::vector<Row> number_rows(const Runs& runs) {
  std::vector<Row> rows;
  for (Row& row : rows_of_members(
           {member(runs[0].last_state, "metrics"), member(runs[1].last_state, "metrics")}, member_text))
    rows.push_back(std::move(row));
  const double both = std::min(runs[0].last_step().value_or(0), runs[1].last_step().value_or(0));
  for (std::size_t i = 1; i <= compared_steps && both >= compared_steps; ++i) {
    const auto step = static_cast<std::uint64_t>(both) * i / compared_steps;
    rows.push_back(row_of(fmt::format("loss at step {}", step), runs,
                          [&](const RunFiles& run) { return number_cell(loss_at(run, step)); }));
  }
  return rows;
}

bool is_known(const Row& row) { return row.values[0] != "-" && row.values[1] != "-"; }

// Of a short run without a metrics file no numbers may have been kept.
Section number_section(const Runs& runs) {
  Section made{"numbers", number_rows(runs)};
  if (std::ranges::none_of(made.rows, is_known)) made.equal = "not known";
  return made;
}

// Without a repository only the script itself is known.
Section code_section(const Runs& runs) {
  Section made{"code", code_rows(runs)};
  const bool is_in_repositories = std::ranges::all_of(
      runs, [](const RunFiles& run) { return !member_text(run.repository, "commit").empty(); });
  if (!is_in_repositories)
    made.equal = is_known(made.rows.front()) ? "the same script, else not known" : "not known";
  return made;
}

std::vector<Section> sections_of(const Runs& runs, double now) {
  return {{"run", run_rows(runs, now)},
          {"settings", setting_rows(runs)},
          {"environment", rows_of_members(members(runs, "environment"), member_text)},
          {"host", rows_of_members(members(runs, "host"), member_text)},
          {"versions", version_rows(runs)},
          code_section(runs),
          number_section(runs)};
}

Result<Runs> two_runs(const std::string& a, const std::string& b) {
  Runs runs;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    MUSTER_TRY(const std::string folder, find_run(i == 0 ? a : b));
    MUSTER_TRY(runs.at(i), read_run(folder, RunDepth::whole));
  }
  return runs;
}

}  // namespace

Result<std::string> comparison_text(const std::string& a, const std::string& b) {
  MUSTER_TRY(const Runs runs, two_runs(a, b));
  std::vector<std::vector<std::string>> rows = {{"run", runs[0].name, runs[1].name}};
  for (const Section& section : sections_of(runs, telemetry::wall_seconds())) {
    const bool shows_all = section.title == "run";
    const bool differs = std::ranges::any_of(section.rows, &Row::differs);
    if (!shows_all) rows.push_back({section.title, differs ? "" : section.equal, ""});
    for (const Row& row : section.rows)
      if (shows_all || row.differs()) rows.push_back({"  " + row.name, row.values[0], row.values[1]});
  }
  return table(rows);
}

Result<std::string> comparison_json(const std::string& a, const std::string& b) {
  MUSTER_TRY(const Runs runs, two_runs(a, b));
  const double now = telemetry::wall_seconds();
  json differences = json::object();
  for (const Section& section : sections_of(runs, now)) {
    json& rows = differences[section.title] = json::array();
    for (const Row& row : section.rows)
      if (row.differs()) rows.push_back({{"name", row.name}, {"a", row.values[0]}, {"b", row.values[1]}});
  }
  const json made = {{"runs", {run_json(runs[0], now), run_json(runs[1], now)}},
                     {"differences", std::move(differences)}};
  return text_of(made);
}

}  // namespace muster::launch
