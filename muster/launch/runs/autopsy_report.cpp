// What runs.h says of autopsies.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "muster/launch/runs/autopsy.h"
#include "muster/launch/runs/run_files.h"
#include "muster/launch/runs/run_row.h"
#include "muster/launch/runs/runs.h"

namespace muster::launch {
namespace {

namespace fs = std::filesystem;

struct FlightFiles {
  std::vector<telemetry::Flight> flights = {};
  std::vector<std::string> problems = {};
};

FlightFiles read_flights(const std::string& folder) {
  FlightFiles read;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::path(folder) / telemetry::flight_folder, ignored)) {
    if (entry.path().extension() != telemetry::flight_extension || !entry.is_regular_file(ignored)) continue;
    auto flight = telemetry::read_flight(entry.path().string());
    if (flight)
      read.flights.push_back(*std::move(flight));
    else
      read.problems.push_back(flight.error().message);
  }
  std::ranges::sort(read.flights, {}, &telemetry::Flight::began_ns);  // who came back is the later one
  std::ranges::sort(read.problems);
  return read;
}

}  // namespace

Result<std::string> autopsy_text(const std::string& name) {
  MUSTER_TRY(const std::string folder, find_run(name));
  MUSTER_TRY(const RunFiles run, read_run(folder, RunDepth::whole));
  FlightFiles files = read_flights(folder);
  if (files.flights.empty())
    return fail(
        Code::not_found,
        fmt::format("there is no flight recorder in '{}/flight': workers of jobs that `muster run` starts "
                    "keep one from when they join on",
                    printable(folder)));
  const double now = telemetry::wall_seconds();
  std::string text = fmt::format(
      "{}: {}, {} ranks, {}, {}\n", run.name, member_text(run.description, "script"),
      member_text(run.description, "ranks"), run.state(), length_text(run.seconds(now).value_or(0)));
  text += findings_of({.flights = std::move(files.flights),
                       .events = run.events,
                       .now_ns = telemetry::wall_ns(),
                       .runs = run.runs == true});
  for (const std::string& problem : files.problems) text += printable(problem) + '\n';
  return text;
}

}  // namespace muster::launch
