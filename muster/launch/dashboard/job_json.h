// JSON that the page reads (page/dashboard.js). Version 1.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/launch/dashboard/job_history.h"
#include "muster/launch/status.h"

namespace muster::launch {

// {"time": ..., "state": ..., "ranks": [[...], ...]}: a row for each process, whose columns are
// `rank_columns`, and the point of the curves.
nlohmann::json state_json(const JobStatus& job, double time);
nlohmann::json rank_columns();
// Columns of numbers, null where nothing is known: {"time": [...], "loss": [...], ...}.
// {"time": ..., "loss": ..., "metric/mae": ...}.
nlohmann::json point_json(const JobPoint& point);
nlohmann::json points_json(const std::vector<JobPoint>& points);
nlohmann::json event_json(const JobEvent& event);
JobPoint point_from(const nlohmann::json& state);
// The newest of a run: that which was `seen` last, or what rank 0 told at its end (`training`:
// training.json), which the launcher may not have asked for any more. A process that was killed has not told
// it.
JobPoint last_point_of(const JobPoint& seen, const nlohmann::json& training);
JobEvent event_from(const nlohmann::json& event);

// On one line, whatever bytes a name has.
std::string line_of(const nlohmann::json& value);
// The same for people: indented, with the end of its last line.
std::string text_of(const nlohmann::json& value);

}  // namespace muster::launch
