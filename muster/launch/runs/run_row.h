// Row of a run in a table, and its numbers as people read them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "muster/launch/runs/run_files.h"
#include "muster/telemetry/telemetry.h"

namespace muster::launch {

std::string time_of_day(double time);     // "2026-01-01 12:00:00", here; "-" where it is 0
std::string length_text(double seconds);  // "3.2 s", "2 min 05 s", "3 h 20 min"
std::string number_cell(const std::optional<double>& value);
std::string step_cell(const std::optional<double>& step);
nlohmann::json run_json(const RunFiles& run, double now);

}  // namespace muster::launch
